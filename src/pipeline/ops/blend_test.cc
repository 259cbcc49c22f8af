#include "src/pipeline/ops/blend.h"

#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/ops/luminance.h"

namespace sluice::pipeline {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Every level beside every other one, in all three channels.
Bytes pixels_of(std::size_t count) {
  Bytes pixels(3 * count);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>((i * 73 + i / 256 * 31) % 256);
  return pixels;
}

constexpr float kFactors[] = {0, 0.2F, 0.5F, 1.0F / 3, 1, 1.7F, 3.9F, -0.3F};
constexpr Registers kRegisters[] = {Registers::kEveryProcessors, Registers::kWidest};
constexpr std::size_t kCounts[] = {0, 1, 10, 11, 63, 64, 65, 150, 1000};  // pixels: whole vectors and blocks, and rests

TEST_CASE("bytes are blended from a level one by one, whatever the processor does at a time") {
  for (const std::size_t count : kCounts) {
    for (const float factor : kFactors) {
      for (const int level : {0, 93, 255}) {
        CAPTURE(count, factor, level);
        Bytes want = pixels_of(count);
        for (std::uint8_t& byte : want) byte = blend(level, byte, factor);
        for (const Registers registers : kRegisters) {
          Bytes pixels = pixels_of(count);
          blend_from_level(level, factor, pixels, registers);
          CHECK(pixels == want);
        }
      }
    }
  }
}

TEST_CASE("pixels are blended from their own grey, and greys add up") {
  for (const std::size_t count : kCounts) {
    Bytes before = pixels_of(count);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < before.size(); i += 3) sum += luminance(&before[i]);
    for (const Registers registers : kRegisters) {
      CHECK(sum_of_greys(before, registers) == sum);
      for (const float factor : kFactors) {
        CAPTURE(count, factor);
        Bytes pixels = before;
        Bytes want = before;
        for (std::size_t i = 0; i < want.size(); ++i) want[i] = blend(luminance(&before[i - i % 3]), before[i], factor);
        blend_from_greys(factor, pixels, registers);
        CHECK(pixels == want);
      }
    }
  }
}

TEST_CASE("grey pixels are what a blend leaves of their colours with a factor of zero") {
  for (const std::size_t count : kCounts) {
    CAPTURE(count);
    Bytes want = pixels_of(count);
    blend_from_greys(0, want);
    for (const Registers registers : kRegisters) {
      Bytes pixels = pixels_of(count);
      make_grey(pixels, registers);
      CHECK(pixels == want);
    }
  }
}

TEST_CASE("a blend is truncated, and clipped beyond its ends") {
  CHECK(blend(0, 255, 0.5F) == 127);
  CHECK(blend(10, 11, 0.9F) == 10);
  CHECK(blend(100, 200, 3) == 255);
  CHECK(blend(100, 50, 3) == 0);
}

}  // namespace
}  // namespace sluice::pipeline
