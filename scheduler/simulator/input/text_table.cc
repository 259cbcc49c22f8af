#include "scheduler/simulator/input/text_table.h"

#include <algorithm>

namespace sluice::simulator {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // that editors of Windows put before a text
constexpr std::size_t kShownCharacters = 40;

// As much of a field as a message can hold; a file that is no text does not reach the terminal as it is.
std::string shown_field(std::string_view field) {
  std::string shown(field.substr(0, kShownCharacters));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = '?';
  return shown + (field.size() > kShownCharacters ? "..." : "");
}

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  const bool blanks = separator == ' ';
  std::size_t at = 0;
  while (at <= line.size()) {
    std::size_t end = blanks ? line.find_first_of(" \t", at) : line.find(separator, at);
    if (end == std::string_view::npos) end = line.size();
    if (blanks && at < line.size() && line[at] == '#') break;  // a remark behind the fields
    if (!blanks || end > at) fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

}  // namespace

std::vector<TextLine> split_lines(std::string_view text, char separator) {
  std::vector<TextLine> lines;
  int number = 0;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos || line[first] == '#') continue;
    lines.push_back({number, split(line, separator)});
  }
  return lines;
}

Result<double> number_field(const std::string& file, const TextLine& line, std::size_t index, std::string_view name,
                            double least, double most) {
  if (index >= line.fields.size()) return line_error(file, line.number, std::string(name) + " is missing");
  const std::optional<double> value = number_of(line.fields[index]);
  const std::string field = shown_field(line.fields[index]);
  if (!value) return line_error(file, line.number, std::string(name) + " \"" + field + "\" is not a number");
  if (*value < least || *value > most)
    return line_error(file, line.number, std::string(name) + " " + field + " is out of range");
  return *value;
}

Result<std::vector<std::size_t>> columns(const std::string& file, const TextLine& header,
                                         const std::vector<std::string_view>& wanted) {
  std::vector<std::size_t> found;
  for (const std::string_view name : wanted) {
    const auto at = std::find(header.fields.begin(), header.fields.end(), name);
    if (at == header.fields.end()) return line_error(file, header.number, "no column \"" + std::string(name) + "\"");
    found.push_back(static_cast<std::size_t>(at - header.fields.begin()));
  }
  return found;
}

}  // namespace sluice::simulator
