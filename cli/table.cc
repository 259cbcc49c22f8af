#include "cli/table.h"

#include <algorithm>

namespace sluice::cli {
namespace {

std::string render_line(const std::vector<Column>& columns, const std::vector<std::size_t>& widths,
                        const std::vector<std::string>& cells, std::size_t max_width) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string padding(widths[i] - std::min(widths[i], cells[i].size()), ' ');
    if (i > 0) line += "  ";
    line += columns[i].right_aligned ? padding + cells[i] : cells[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  if (max_width > 3 && line.size() > max_width) line = line.substr(0, max_width - 3) + "...";
  return line + "\n";
}

}  // namespace

std::string render_table(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows,
                         std::size_t max_width) {
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (const Column& column : columns) {
    titles.push_back(column.title);
    widths.push_back(column.title.size());
  }
  for (const auto& row : rows)
    for (std::size_t i = 0; i < columns.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text = render_line(columns, widths, titles, max_width);
  for (const auto& row : rows) text += render_line(columns, widths, row, max_width);
  return text;
}

}  // namespace sluice::cli
