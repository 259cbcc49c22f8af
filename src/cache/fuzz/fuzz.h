// Fuzz targets of what lies on the cache's disk, and of what is said to a node's cache (src/base/testing/fuzz_check.h).
#pragma once

#include <string_view>

#include "src/base/testing/fuzz_check.h"

namespace sluice::cache::fuzz {

void node_message(std::string_view input);
void segment(std::string_view input);

}  // namespace sluice::cache::fuzz
