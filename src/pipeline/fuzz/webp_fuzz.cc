// A WebP file: refused with a reason, or decoded to the same pixels every time.
#include <optional>
#include <string_view>
#include <vector>

#include "src/pipeline/fuzz/decoded_box.h"
#include "src/pipeline/fuzz/fuzz.h"
#include "src/pipeline/testing/decoded_pixels.h"
#include "src/pipeline/webp_decoder.h"

namespace sluice::pipeline::fuzz {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::int64_t kWebpPixelsMax = 1 << 16;

std::optional<Bytes> webp_pixels(WebpDecoder& decoder, const Bytes& file) {
  const auto size = size_to_decode(decoder.open(file), kWebpPixelsMax);
  if (!size) return std::nullopt;
  const auto view = decoder.decode(whole_of(*size));
  if (!view) return std::nullopt;
  return testing::pixels_of(*view);
}

}  // namespace

void webp(std::string_view input) {
  const Bytes file(input.begin(), input.end());
  if (!is_webp(file)) return;
  WebpDecoder decoder;
  const auto pixels = webp_pixels(decoder, file);
  FUZZ_CHECK(webp_pixels(decoder, file) == pixels);
}

}  // namespace sluice::pipeline::fuzz
