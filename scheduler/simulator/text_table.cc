#include "scheduler/simulator/text_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sluice::simulator {
namespace {

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  const bool blanks = separator == ' ';
  std::size_t at = 0;
  while (at <= line.size()) {
    std::size_t end = blanks ? line.find_first_of(" \t", at) : line.find(separator, at);
    if (end == std::string_view::npos) end = line.size();
    if (!blanks || end > at) fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

}  // namespace

std::vector<TextLine> split_lines(std::string_view text, char separator) {
  std::vector<TextLine> lines;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos || line.front() == '#') continue;
    lines.push_back({number, split(line, separator)});
  }
  return lines;
}

std::optional<double> number_of(std::string_view field) {
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

Error line_error(const std::string& file, int line, const std::string& what) {
  return invalid_argument(file + ":" + std::to_string(line) + ": " + what);
}

Result<double> number_field(const std::string& file, const TextLine& line, std::size_t index, std::string_view name,
                            double least, double most) {
  if (index >= line.fields.size()) return line_error(file, line.number, std::string(name) + " is missing");
  const std::string field(line.fields[index]);
  const std::optional<double> value = number_of(field);
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
