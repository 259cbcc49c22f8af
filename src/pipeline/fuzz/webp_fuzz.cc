// A WebP file: refused with a reason, or decoded to the same pixels every time.
#include <optional>
#include <string_view>
#include <vector>

#include "src/pipeline/fuzz/fuzz.h"
#include "src/pipeline/testing/decoded_pixels.h"
#include "src/pipeline/webp_decoder.h"

namespace sluice::pipeline::fuzz {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Larger images take too long to decode for a fuzzer.
constexpr std::int64_t kMaxPixels = 1 << 16;

std::optional<Bytes> pixels_of(WebpDecoder& decoder, const Bytes& file) {
  const auto size = decoder.open(file);
  if (!size) {
    FUZZ_CHECK(!size.error().message().empty());
    return std::nullopt;
  }
  FUZZ_CHECK(size->height > 0 && size->width > 0);
  const std::int64_t pixels = std::int64_t{size->height} * size->width;
  FUZZ_CHECK(pixels <= kMaxImagePixels);
  if (pixels > kMaxPixels) return std::nullopt;
  const auto view = decoder.decode({0, 0, size->height, size->width});
  if (!view) return std::nullopt;
  return testing::pixels_of(*view);
}

}  // namespace

void webp(std::string_view input) {
  const Bytes file(input.begin(), input.end());
  if (!is_webp(file)) return;
  WebpDecoder decoder;
  const auto pixels = pixels_of(decoder, file);
  FUZZ_CHECK(pixels_of(decoder, file) == pixels);
}

}  // namespace sluice::pipeline::fuzz
