// The fuzz target of what stores and those who lend credentials answer (src/base/testing/fuzz_check.h).
#pragma once

#include <string_view>

#include "src/base/testing/fuzz_check.h"

namespace sluice::object_store::fuzz {

// A status, a line for each header, an empty line, a body.
void store_answer(std::string_view input);

}  // namespace sluice::object_store::fuzz
