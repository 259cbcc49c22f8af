// Fuzz target of what lies on the cache's disk (src/base/testing/fuzz_check.h).
#pragma once

#include <string_view>

#include "src/base/testing/fuzz_check.h"

namespace sluice::cache::fuzz {

void segment(std::string_view input);

}  // namespace sluice::cache::fuzz
