#include "src/pipeline/pixel_table.h"

#include <array>
#include <numeric>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::pipeline {
namespace {

using testing::pixel_table;

// Two images of 2x3 with three channels, whose bytes are 0 to 35 in the order of memory.
std::vector<std::uint8_t> counted(std::size_t bytes) {
  std::vector<std::uint8_t> pixels(bytes);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  return pixels;
}

std::vector<std::uint8_t> rgb_of(const PixelTable& table, std::size_t index) {
  std::vector<std::uint8_t> rgb(bytes_of(table.image_size()));
  table.copy_rgb(index, rgb);
  return rgb;
}

TEST_CASE("whatever order the axes have in memory, an image comes as its pixels") {
  const std::pair<const char*, std::array<int, 3>> kSteps[] = {// bytes from one row, pixel and channel to the next
                                                               {"hwc", {9, 3, 1}}, {"hcw", {9, 1, 3}},
                                                               {"whc", {3, 6, 1}}, {"wch", {1, 6, 2}},
                                                               {"chw", {3, 1, 6}}, {"cwh", {1, 2, 6}}};
  for (const auto& [axes, steps] : kSteps) {
    CAPTURE(axes);
    const auto table = PixelTable::parse(pixel_table({7, -1}, counted(36)), {2, {2, 3}, 3, axes});
    REQUIRE(table.ok());
    for (int sample = 0; sample < 2; ++sample) {
      std::vector<std::uint8_t> want;
      for (int y = 0; y < 2; ++y)
        for (int x = 0; x < 3; ++x)
          for (int channel = 0; channel < 3; ++channel)
            want.push_back(static_cast<std::uint8_t>(18 * sample + y * steps[0] + x * steps[1] + channel * steps[2]));
      CHECK(rgb_of(*table, static_cast<std::size_t>(sample)) == want);
    }
  }
}

TEST_CASE("a grey image has three equal channels") {
  for (const char* axes : {"hwc", "chw"}) {
    const auto table = PixelTable::parse(pixel_table({7, -1}, counted(12)), {2, {2, 3}, 1, axes});
    REQUIRE(table.ok());
    CHECK(rgb_of(*table, 1) == std::vector<std::uint8_t>{6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10, 10, 11, 11, 11});
  }
}

TEST_CASE("labels are numbers of 64 bits, wherever the table begins") {
  const std::string bytes = "header\n" + pixel_table({7, INT64_MIN, INT64_MAX}, counted(3));
  const auto table = PixelTable::parse(std::string_view(bytes).substr(7), {3, {1, 1}, 1, "hwc"}, nullptr);
  REQUIRE(table.ok());
  REQUIRE(table->size() == 3);
  CHECK(table->label(0) == 7);
  CHECK(table->label(1) == INT64_MIN);
  CHECK(table->label(2) == INT64_MAX);
}

TEST_CASE("a table may have no samples") {
  const auto table = PixelTable::parse(std::string(), {0, {28, 28}, 1, "hwc"});
  REQUIRE(table.ok());
  CHECK(table->size() == 0);
}

TEST_CASE("a table of pixels whose bytes are not those of its shape is refused") {
  const std::string whole = pixel_table({1, 2}, counted(36));
  const auto refusal = [](const std::string& bytes, const PixelShape& shape) {
    const auto table = PixelTable::parse(bytes, shape);
    return table.ok() ? std::string() : table.error().message();
  };
  CHECK(refusal(whole, {2, {2, 3}, 3, "hwc"}).empty());
  for (const std::uint64_t samples : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1} << 32,
                                      // 26 bytes each: so many are 52 bytes more than 2^64, or just 2^64 more
                                      (std::uint64_t{1} << 63) + 2, UINT64_MAX}) {
    CAPTURE(samples);
    CHECK_THAT(refusal(whole, {samples, {2, 3}, 3, "hwc"}),
               Catch::Contains("are not those of " + std::to_string(samples)));
  }
  CHECK_THAT(refusal(whole + "x", {2, {2, 3}, 3, "hwc"}),
             Catch::Contains("53 bytes, which are not those of 2 samples"));
  CHECK_THAT(refusal(whole.substr(1), {2, {2, 3}, 3, "hwc"}), Catch::Contains("51 bytes"));
  CHECK_FALSE(refusal(whole, {2, {2, 3}, 1, "hwc"}).empty());
  CHECK_FALSE(refusal(whole, {2, {16384, 16384}, 3, "hwc"}).empty());
  for (const char* axes : {"", "hw", "hwcc", "hhc", "HWC", "nhw"}) {
    CAPTURE(axes);
    CHECK_THAT(refusal(whole, {2, {2, 3}, 3, axes}), Catch::Contains("are not h, w and c"));
  }
}

}  // namespace
}  // namespace sluice::pipeline
