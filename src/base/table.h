// A table for terminals: columns as wide as their widest cell, two spaces apart, no trailing spaces.
//
// Thread safety: a value.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice {

class Table {
 public:
  // All columns are aligned to the right but those in `left_aligned`.
  explicit Table(std::vector<std::string> heading, const std::vector<std::size_t>& left_aligned = {0});

  // REQUIRES: as many cells as the heading has
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  const std::vector<std::vector<std::string>>& rows() const { return rows_; }  // the heading first
  bool empty() const { return rows_.size() == 1; }                             // but for the heading
  // Lines longer than `max_width` are cut, with "..." at the end; 0: never. Widths count bytes: cells are ASCII.
  std::string text(std::size_t max_width = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> left_;
};

}  // namespace sluice
