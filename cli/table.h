// Text in aligned columns.
//
// Thread safety: pure function.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::cli {

struct Column {
  std::string title;
  bool right_aligned = false;
};

// One line for the titles and one per row, columns two spaces apart, no trailing spaces. Every row has one cell per
// column. Lines longer than `max_width` are cut, with "..." at the end; 0: never. Widths count bytes: cells are ASCII.
std::string render_table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows,
                         std::size_t max_width);

}  // namespace sluice::cli
