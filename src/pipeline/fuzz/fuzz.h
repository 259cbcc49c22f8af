// Fuzz targets of what executors are sent and what they read (src/base/testing/fuzz_check.h).
#pragma once

#include <string_view>

#include "src/base/testing/fuzz_check.h"

namespace sluice::pipeline::fuzz {

void specification(std::string_view input);
void flac(std::string_view input);
void jpeg(std::string_view input);
void jpeg_coefficients(std::string_view input);
void png(std::string_view input);
void webp(std::string_view input);

}  // namespace sluice::pipeline::fuzz
