#include "src/kube/fuzz/fuzz.h"

// SLUICE_FUZZ_TARGET: the name of one of fuzz.h's functions, from the build.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::kube::fuzz::SLUICE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
