// A fuzz target: what it is given comes from anybody. It fails by crashing, by a sanitizer's report, or by FUZZ_CHECK.
//
// With clang the targets are libFuzzer programs (`make fuzz`). With g++ a driver runs them over their seed corpus and a
// fixed number of mutations of it, the same ones every time: that is the test in `make test`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)

namespace sluice::kube::fuzz {

// Defined by each target.
void run(std::string_view input);

}  // namespace sluice::kube::fuzz
