#include "src/base/table.h"

#include <algorithm>

namespace sluice {

Table::Table(std::vector<std::string> heading, const std::vector<std::size_t>& left_aligned)
    : rows_{std::move(heading)}, left_(rows_[0].size()) {
  for (const std::size_t column : left_aligned) left_[column] = true;
}

std::string Table::text(std::size_t max_width) const {
  std::vector<std::size_t> widths(left_.size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (left_[i] ? row[i] + blanks : blanks + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (max_width > 3 && line.size() > max_width) line = line.substr(0, max_width - 3) + "...";
    text += line + "\n";
  }
  return text;
}

}  // namespace sluice
