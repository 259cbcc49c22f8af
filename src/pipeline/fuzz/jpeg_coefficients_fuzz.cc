// A transcoded JPEG, as a cache keeps it: refused, or pixels, the same ones with all kernels.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "src/pipeline/fuzz/fuzz.h"
#include "src/pipeline/jpeg_coefficients.h"
#include "src/pipeline/testing/decoded_pixels.h"

namespace sluice::pipeline::fuzz {
namespace {

// Larger images take too long to decode for a fuzzer.
constexpr std::int64_t kCoefficientPixelsMax = 1 << 18;

// Empty if the bytes are refused, or the image is too large.
std::vector<std::uint8_t> decoded_pixels_of(std::span<const std::uint8_t> coded, bool middle_only,
                                            const JpegKernels& kernels) {
  JpegCoefficientDecoder decoder(kernels);
  const auto size = decoder.open(coded);
  if (!size) return {};
  FUZZ_CHECK(size->height > 0 && size->width > 0);
  if (std::int64_t{size->height} * size->width > kCoefficientPixelsMax) return {};
  const Box box = middle_only ? Box{size->height / 3, size->width / 3, (size->height + 2) / 3, (size->width + 2) / 3}
                              : Box{0, 0, size->height, size->width};
  const auto view = decoder.decode(box);
  return view ? testing::pixels_of(*view) : std::vector<std::uint8_t>();
}

}  // namespace

void jpeg_coefficients(std::string_view input) {
  // In memory of its own: a sanitizer sees a read behind its end.
  const std::vector<std::uint8_t> coded(input.begin(), input.end());
  for (const bool middle_only : {false, true}) {
    std::optional<std::vector<std::uint8_t>> wanted;
    for (const JpegKernels* kernels : available_jpeg_kernels()) {
      const auto found = decoded_pixels_of(coded, middle_only, *kernels);
      if (!wanted) wanted = found;
      FUZZ_CHECK(found == *wanted);
    }
  }
}

}  // namespace sluice::pipeline::fuzz
