// By hand, on images of few pixels; torch_conformance_test.py compares whole images with Pillow.
#include "src/pipeline/ops/enhance.h"

#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST_CASE("changes of single levels") {
  struct Case {
    const char* name;
    void (*change)(Pixels);
    Bytes want;
  };
  const Case cases[] = {
      {"posterize to 2 bits", [](Pixels pixels) { posterize(2, pixels); }, {0, 64, 64, 128, 192, 192}},
      {"posterize to 8 bits", [](Pixels pixels) { posterize(8, pixels); }, {0, 64, 127, 128, 200, 255}},
      {"solarize inverts from the threshold on",
       [](Pixels pixels) { solarize(127, pixels); },
       {0, 64, 128, 127, 55, 0}},
      {"invert", invert, {255, 191, 128, 127, 55, 0}},
      {"half as bright", [](Pixels pixels) { adjust_brightness(0.5F, pixels); }, {0, 32, 63, 64, 100, 127}},
      {"beyond white", [](Pixels pixels) { adjust_brightness(2.0F, pixels); }, {0, 128, 254, 255, 255, 255}},
  };
  for (const Case& test : cases) {
    CAPTURE(test.name);
    Bytes pixels{0, 64, 127, 128, 200, 255};
    test.change(pixels);
    CHECK(pixels == test.want);
  }
}

TEST_CASE("autocontrast stretches each channel by itself") {
  Bytes pixels{50, 7, 0, 100, 7, 255, 150, 7, 10};
  look_up(autocontrast_tables(pixels), pixels);
  CHECK(pixels == Bytes{0, 7, 0, 127, 7, 255, 255, 7, 10});
}

TEST_CASE("equalize leaves a channel with few pixels or one level alone") {
  Bytes few{50, 7, 0, 100, 7, 255};
  look_up(equalize_tables(few), few);
  CHECK(few == Bytes{50, 7, 0, 100, 7, 255});
  Bytes flat(std::size_t{3} * 1000, 9);
  look_up(equalize_tables(flat), flat);
  CHECK(flat == Bytes(std::size_t{3} * 1000, 9));
}

TEST_CASE("equalize spreads the levels of many pixels over all levels") {
  Bytes pixels;
  for (int i = 0; i < 1000; ++i) pixels.insert(pixels.end(), 3, static_cast<std::uint8_t>(100 + i / 250));
  look_up(equalize_tables(pixels), pixels);
  // 750 of 1,000 pixels lie below the highest level: a step of 2 for each new level, and the rest is clipped.
  CHECK(pixels[0] == 0);
  CHECK(pixels[std::size_t{3} * 250] == 125);
  CHECK(pixels[std::size_t{3} * 500] == 250);
  CHECK(pixels[std::size_t{3} * 750] == 255);
}

TEST_CASE("sharpness blends with the smoothed image and keeps the border") {
  Bytes from(std::size_t{3} * 9, 0);
  for (std::size_t channel = 0; channel < 3; ++channel) from[4 * 3 + channel] = 130;
  Bytes to(from.size());
  adjust_sharpness(0.0F, {3, 3}, from, {0, 0, 3, 3}, to);
  Bytes want(from.size(), 0);
  for (std::size_t channel = 0; channel < 3; ++channel) want[4 * 3 + channel] = 50;  // 130 * 5 / 13
  CHECK(to == want);
  adjust_sharpness(1.0F, {3, 3}, from, {0, 0, 3, 3}, to);
  CHECK(to == from);
  adjust_sharpness(0.0F, {1, 9}, from, {0, 0, 1, 9}, to);
  CHECK(to == from);  // no pixel has eight around it
}

TEST_CASE("a tensor's contrast is stretched in float32, which may miss the last level") {
  Bytes pixels{50, 7, 0, 60, 7, 255, 100, 7, 10, 150, 7, 20};
  look_up(tensor_autocontrast_tables(pixels), pixels);
  CHECK(pixels == Bytes{0, 7, 0, 25, 7, 255, 127, 7, 10, 254, 7, 20});
}

TEST_CASE("a tensor's sharpness blends with whole numbers and keeps the border") {
  struct Case {
    double change;
    std::uint8_t want;
  };
  for (const auto& [change, want] : {Case{-1, 50}, Case{-0.5, 90}, Case{0, 130}, Case{1, 210}, Case{9, 255}}) {
    CAPTURE(change);
    Bytes from(std::size_t{3} * 9, 0);
    for (std::size_t channel = 0; channel < 3; ++channel) from[4 * 3 + channel] = 130;
    Bytes to(from.size());
    adjust_tensor_sharpness(change, {3, 3}, from, {0, 0, 3, 3}, to);
    Bytes whole = from;
    for (std::size_t channel = 0; channel < 3; ++channel) whole[4 * 3 + channel] = want;
    CHECK(to == whole);
    Bytes middle(3);
    adjust_tensor_sharpness(change, {3, 3}, from, {1, 1, 1, 1}, middle);
    CHECK(middle == Bytes(3, want));
    adjust_tensor_sharpness(change, {1, 9}, from, {0, 0, 1, 9}, to);
    CHECK(to == from);
  }
}

}  // namespace
}  // namespace sluice::pipeline
