// Fuzz targets: what each is given comes from anybody. A target fails by crashing, by a sanitizer's report, or by
// FUZZ_CHECK.
//
// With clang each is a libFuzzer program (`make fuzz`). Everywhere, fuzz_test.cc runs them over their seed corpus and a
// fixed number of mutations of it, the same ones every time.
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

void watch(std::string_view input);
void status(std::string_view input);
void quantity(std::string_view input);
void timestamp(std::string_view input);
void kubeconfig(std::string_view input);
void exec_credential(std::string_view input);

}  // namespace sluice::kube::fuzz
