// Lines and fields of a text file, with messages that name the line: the base of all trace readers.
//
// Thread safety: plain values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/base/text_input.h"

namespace sluice::simulator {

struct TextLine {
  int number = 0;  // from 1
  std::vector<std::string_view> fields;
};

// The lines of `text`, split at `separator`, without empty lines and comments ('#' before anything else). ' ' splits at
// any run of blanks and tabs. Then a '#' after the fields begins a comment, too. Ends of lines, and the mark before the
// first, may be those of Windows. The views point into `text`.
std::vector<TextLine> split_lines(std::string_view text, char separator);

// The field as a number within bounds. Errors: names the line, the field by `name`, and its content.
Result<double> number_field(const std::string& file, const TextLine& line, std::size_t index, std::string_view name,
                            double least, double most);

// Where each wanted column stands in a header line. Errors: names the column that is missing.
Result<std::vector<std::size_t>> columns(const std::string& file, const TextLine& header,
                                         const std::vector<std::string_view>& wanted);

}  // namespace sluice::simulator
