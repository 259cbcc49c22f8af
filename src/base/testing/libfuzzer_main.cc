// From the build: SLUICE_FUZZ_HEADER declares SLUICE_FUZZ_TARGET, the function of one target.
#include SLUICE_FUZZ_HEADER

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  SLUICE_FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
