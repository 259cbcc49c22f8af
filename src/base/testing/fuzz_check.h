// Fuzz targets: their input may come from any sender. A target fails by crashing, by a sanitizer's report, or by
// FUZZ_CHECK.
//
// With clang each is a libFuzzer program (`make fuzz`). Everywhere, the fuzz_test.cc beside them runs them over their
// seed corpus and mutations of it (mutations.h).
#pragma once

#include <cstdio>
#include <cstdlib>

#define FUZZ_CHECK(condition)                                                             \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      std::fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                       \
    }                                                                                     \
  } while (false)
