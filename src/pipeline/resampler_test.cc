#include "src/pipeline/resampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

struct Image {
  ImageSize size;
  std::vector<std::uint8_t> bytes;

  RgbView view(const Box& box) const {
    const std::size_t stride = static_cast<std::size_t>(size.width) * 3;
    return {bytes.data() + static_cast<std::size_t>(box.top) * stride + static_cast<std::size_t>(box.left) * 3,
            stride,
            {box.height, box.width}};
  }
  std::uint8_t at(int y, int x, int channel) const {
    return bytes[(static_cast<std::size_t>(y) * static_cast<std::size_t>(size.width) + static_cast<std::size_t>(x)) *
                     3 +
                 static_cast<std::size_t>(channel)];
  }
};

Image noise(ImageSize size, std::uint32_t seed) {
  std::mt19937 random(seed);
  const std::size_t bytes = static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width) * 3;
  Image image{size, std::vector<std::uint8_t>(bytes + kReadableBytesBehindPixels)};
  // Extremes are what overflows: a third of the pixels is black, a third white.
  for (auto& byte : image.bytes) {
    const std::uint32_t draw = random();
    byte = draw % 3 == 0 ? 0 : draw % 3 == 1 ? 255 : static_cast<std::uint8_t>(draw >> 24);
  }
  return image;
}

GeometryPlan whole(ImageSize from, ImageSize to, Interpolation interpolation = Interpolation::kBilinear) {
  return {{0, 0, from.height, from.width}, to, {0, 0, to.height, to.width}, false, interpolation};
}

Image resized(const Image& image, const GeometryPlan& plan, PassOrder order = PassOrder::kHeightFirstIfShrunkMore,
              const ResampleKernels& kernels = best_kernels()) {
  Resampler resampler(kernels);
  const Box box = resampler.prepare(plan, order);
  REQUIRE((box.top >= plan.source.top && box.left >= plan.source.left));
  REQUIRE((box.top + box.height <= plan.source.top + plan.source.height));
  REQUIRE((box.left + box.width <= plan.source.left + plan.source.width));
  Image result{{plan.window.height, plan.window.width}, {}};
  // Of the exact size, so that a sanitizer sees a byte too many.
  result.bytes.resize(static_cast<std::size_t>(plan.window.height) * static_cast<std::size_t>(plan.window.width) * 3);
  resampler.resample(image.view(box), result.bytes);
  return result;
}

// The definition, in double precision and without intermediate rounding: a triangle as wide as the scale.
double reference(const Image& image, ImageSize to, int y, int x, int channel) {
  const auto weigh = [](int input_size, int output_size, int output, auto&& value) {
    const double scale = static_cast<double>(input_size) / output_size;
    const double reach = std::max(scale, 1.0);
    const double center = (output + 0.5) * scale;
    double sum = 0;
    double weights = 0;
    for (int i = 0; i < input_size; ++i) {
      const double weight = std::max(0.0, 1.0 - std::abs((i + 0.5 - center) / reach));
      if (weight > 0) sum += weight * value(i);
      weights += weight;
    }
    return sum / weights;
  };
  return weigh(image.size.height, to.height, y, [&](int row) {
    return weigh(image.size.width, to.width, x, [&](int column) { return double{1} * image.at(row, column, channel); });
  });
}

const Interpolation kFiltering[] = {Interpolation::kBilinear, Interpolation::kBicubic, Interpolation::kTensorBilinear,
                                    Interpolation::kTensorBicubic};

const ImageSize kSizes[] = {{1, 1}, {2, 3}, {7, 5}, {16, 16}, {31, 64}, {40, 9}, {100, 3}};

TEST_CASE("bilinear resizing is the antialiased triangle filter, to one unit of rounding") {
  for (const ImageSize from : kSizes) {
    for (const ImageSize to : kSizes) {
      const Image image = noise(from, 1);
      const Image result = resized(image, whole(from, to));
      double worst = 0;
      for (int y = 0; y < to.height; ++y) {
        for (int x = 0; x < to.width; ++x) {
          for (int channel = 0; channel < 3; ++channel) {
            worst = std::max(worst, std::abs(result.at(y, x, channel) - reference(image, to, y, x, channel)));
          }
        }
      }
      CAPTURE(from.height, from.width, to.height, to.width);
      CHECK(worst < 1.01);  // half a unit in each of two passes
    }
  }
}

TEST_CASE("a resize to the same size changes nothing") {
  for (const Interpolation interpolation : kFiltering) {
    for (const ImageSize size : kSizes) {
      Image image = noise(size, 2);
      const Image result = resized(image, whole(size, size, interpolation));
      image.bytes.resize(result.bytes.size());
      CHECK(result.bytes == image.bytes);
    }
  }
}

TEST_CASE("one colour stays one colour") {
  for (const int colour : {0, 1, 127, 254, 255}) {
    Image image = noise({33, 47}, 3);
    std::fill(image.bytes.begin(), image.bytes.end(), static_cast<std::uint8_t>(colour));
    for (const Interpolation interpolation : kFiltering) {
      const Image result = resized(image, whole(image.size, {20, 90}, interpolation));
      CHECK(std::all_of(result.bytes.begin(), result.bytes.end(), [&](std::uint8_t byte) { return byte == colour; }));
    }
  }
}

TEST_CASE("bicubic overshoot is clamped to a byte") {
  Image image = noise({1, 8}, 4);
  for (int x = 0; x < 8; ++x) std::memset(image.bytes.data() + 3 * x, x < 4 ? 0 : 255, 3);
  const Image result = resized(image, whole({1, 8}, {1, 32}, Interpolation::kBicubic));
  CHECK(result.at(0, 0, 0) == 0);
  CHECK(result.at(0, 13, 0) == 0);    // undershoots
  CHECK(result.at(0, 18, 0) == 255);  // overshoots
  CHECK(result.at(0, 31, 2) == 255);
}

TEST_CASE("a tensor's resize has weights of 16 bits, however little of the result is made") {
  struct Case {
    int input_size, output_size, want_bits;
  };
  // Enlarged, the largest weight is 1. Shrunk, it is at an edge, which cuts the triangle.
  for (const Case& c :
       {Case{10, 20, 14}, Case{40, 20, 16}, Case{500, 224, 16}, Case{4000, 40, 21}, Case{9000, 20, 22}}) {
    AxisTaps taps;
    for (const int outputs : {c.output_size, 1}) {
      taps.compute(Interpolation::kTensorBilinear, c.input_size, c.output_size, 0, outputs, false);
      const std::int32_t unit = 1 << (kWeightBits - c.want_bits);
      CAPTURE(c.input_size, c.output_size, outputs);
      int largest = 0;
      bool are_multiples = true;
      for (const std::int32_t weight : taps.weights) {
        largest = std::max(largest, weight / unit);
        are_multiples = are_multiples && weight % unit == 0;
      }
      CHECK(are_multiples);
      CHECK(largest < 1 << 15);
      if (outputs > 1 && c.want_bits < kWeightBits) CHECK(largest >= 1 << 14);
    }
  }
}

TEST_CASE("all kernels give the same bytes") {
  for (const ImageSize from : {ImageSize{1, 1}, ImageSize{5, 7}, ImageSize{97, 131}, ImageSize{375, 500}}) {
    for (const ImageSize to : {ImageSize{1, 1}, ImageSize{3, 11}, ImageSize{64, 33}, ImageSize{224, 224}}) {
      for (const Interpolation interpolation : kFiltering) {
        const Image image = noise(from, 5);
        const GeometryPlan plan = whole(from, to, interpolation);
        const Image portable = resized(image, plan, PassOrder::kWidthFirst, portable_kernels());
        for (const ResampleKernels* kernels : available_kernels()) {
          CAPTURE(kernels->name, from.height, from.width, to.height, to.width);
          CHECK(resized(image, plan, PassOrder::kWidthFirst, *kernels).bytes == portable.bytes);
        }
      }
    }
  }
}

TEST_CASE("a window is the same part of the whole result, and reads no more than it needs") {
  const Image image = noise({120, 90}, 6);
  GeometryPlan plan = whole(image.size, {60, 50});
  const Image everything = resized(image, plan);
  plan.window = {20, 10, 25, 31};
  const Image part = resized(image, plan);
  for (int y = 0; y < 25; ++y) {
    for (int x = 0; x < 31; ++x) CHECK(part.at(y, x, 1) == everything.at(y + 20, x + 10, 1));
  }
  Resampler resampler;
  const Box needed = resampler.prepare(plan, PassOrder::kWidthFirst);
  CHECK(needed.height < 54);
  CHECK(needed.width < 62);
}

TEST_CASE("taps stop at the crop box: pixels around it make no difference") {
  Image image = noise({50, 60}, 7);
  GeometryPlan plan = whole({50, 60}, {16, 24});
  plan.source = {10, 12, 31, 37};
  const Image before = resized(image, plan);
  for (int y = 0; y < 50; ++y) {
    for (int x = 0; x < 60; ++x) {
      if (y >= 10 && y < 41 && x >= 12 && x < 49) continue;
      std::memset(image.bytes.data() + (y * 60 + x) * 3, 99, 3);
    }
  }
  CHECK(resized(image, plan).bytes == before.bytes);
}

TEST_CASE("a flip mirrors the result exactly") {
  const Image image = noise({45, 67}, 8);
  for (const ImageSize to : {ImageSize{32, 33}, ImageSize{45, 67}, ImageSize{1, 1}}) {
    GeometryPlan plan = whole(image.size, to);
    const Image straight = resized(image, plan);
    plan.flip = true;
    const Image mirrored = resized(image, plan);
    for (int y = 0; y < to.height; ++y) {
      for (int x = 0; x < to.width; ++x) CHECK(mirrored.at(y, x, 0) == straight.at(y, to.width - 1 - x, 0));
    }
  }
}

TEST_CASE("the order of the passes changes at most the last bit") {
  const Image image = noise({318, 262}, 9);
  const GeometryPlan plan = whole(image.size, {224, 224});
  const Image width_first = resized(image, plan, PassOrder::kWidthFirst);
  const Image height_first = resized(image, plan, PassOrder::kHeightFirstIfShrunkMore);
  int worst = 0;
  for (std::size_t i = 0; i < width_first.bytes.size(); ++i) {
    worst = std::max(worst, std::abs(width_first.bytes[i] - height_first.bytes[i]));
  }
  CHECK(worst == 1);
}

TEST_CASE("weights are fixed point and add up to one") {
  AxisTaps taps;
  for (const int output_size : {1, 7, 224, 900}) {
    taps.compute(Interpolation::kBicubic, 375, output_size, 0, output_size, false);
    for (const AxisTaps::Output& output : taps.outputs) {
      std::int64_t sum = 0;
      for (int i = 0; i < output.count; ++i) {
        const std::size_t at = output.first_group * kTapsPerGroup + static_cast<std::size_t>(i);
        const AxisTaps::Group& group = taps.groups[at / kTapsPerGroup];
        CHECK(taps.weights[at] == group.high[at % kTapsPerGroup] * (1 << kLowBits) + group.low[at % kTapsPerGroup]);
        sum += taps.weights[at];
      }
      CHECK(std::abs(sum - (1 << kWeightBits)) <= output.count);
    }
  }
}

TEST_CASE("a very long image can become one pixel") {
  const Image image = noise({1, 60000}, 10);
  const Image result = resized(image, whole(image.size, {1, 1}));
  CHECK(std::abs(result.at(0, 0, 0) - 127.5) < 5);
}

}  // namespace
}  // namespace sluice::pipeline
