// A table for terminals: columns as wide as their widest cell, numbers to the right.
//
// Thread safety: none.
#pragma once

#include <string>
#include <vector>

namespace sluice::simulator {

class Table {
 public:
  explicit Table(std::vector<std::string> heading) { rows_.push_back(std::move(heading)); }

  // REQUIRES: as many cells as the heading has
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  const std::vector<std::vector<std::string>>& rows() const { return rows_; }  // the heading first
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace sluice::simulator
