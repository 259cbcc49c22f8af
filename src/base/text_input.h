// Text that people write: numbers, and errors that name the file and the line.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace sluice {

// A finite decimal number, and nothing behind it.
std::optional<double> number_of(std::string_view text);

// InvalidArgument "FILE:LINE: what"
Error line_error(const std::string& file, int line, const std::string& what);

}  // namespace sluice
