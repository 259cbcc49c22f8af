#include "src/kube/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::kube::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
