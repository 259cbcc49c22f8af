// What may wait makes the same bytes as at its turn: for each change and each operation that it waits behind, on random
// images of all small sizes.
#include "src/pipeline/late_change.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/ops/affine.h"
#include "src/pipeline/ops/enhance.h"
#include "src/pipeline/ops/image_changes.h"
#include "src/pipeline/planned_image.h"
#include "src/pipeline/torch_random.h"

namespace sluice::pipeline {
namespace {

using Step = std::function<Result<void>(PlannedImage&)>;

struct NamedStep {
  std::string name;
  std::function<Step(TorchRandom&, ImageSize)> draw;
};

int below(std::int64_t limit, TorchRandom& random) { return static_cast<int>(random.randint(0, limit)); }

Step each(ChangeEach change) {
  return [change](PlannedImage& image) -> Result<void> {
    image.change_each(change);
    return {};
  };
}

template <Result<void> (*kChange)(float, PlannedImage&)>
Step by_factor(TorchRandom& random, ImageSize /*size*/) {
  const float factor = random.uniform(-0.5F, 2.5F);
  return [factor](PlannedImage& image) { return kChange(factor, image); };
}

AffineStyle any_style(TorchRandom& random) {
  return {random.chance(0.5) ? Interpolation::kNearest : Interpolation::kBilinear, {7, 100, 250}};
}

Step any_map(const AffineMap& map, TorchRandom& random) {
  return [map, style = any_style(random)](PlannedImage& image) { return transform(map, style, image); };
}

// All that waits.
const std::vector<NamedStep> kChanges{
    {"brightness", by_factor<change_brightness>},
    {"contrast", by_factor<change_contrast>},
    {"saturation", by_factor<change_saturation>},
    {"hue",
     [](TorchRandom& random, ImageSize) -> Step {
       return [turn = random.uniform(-0.5F, 0.5F)](PlannedImage& image) { return change_hue(turn, image); };
     }},
    {"sharpness", by_factor<change_sharpness>},
    {"autocontrast", [](TorchRandom&, ImageSize) -> Step { return stretch_contrast; }},
    {"equalize", [](TorchRandom&, ImageSize) -> Step { return equalize_levels; }},
    {"posterize",
     [](TorchRandom& random, ImageSize) {
       return each([bits = 1 + below(8, random)](Pixels pixels) { posterize(bits, pixels); });
     }},
    {"solarize",
     [](TorchRandom& random, ImageSize) {
       return each([level = below(256, random)](Pixels pixels) { solarize(level, pixels); });
     }},
    {"invert", [](TorchRandom&, ImageSize) { return each(invert); }},
    {"rotation",
     [](TorchRandom& random, ImageSize) -> Step {
       const double degrees = random.chance(0.3) ? 90.0 * below(4, random) : random.uniform(-400, 400);
       return [degrees, style = any_style(random)](PlannedImage& image) { return rotate(degrees, style, image); };
     }},
    {"shear",
     [](TorchRandom& random, ImageSize) {
       return any_map(shear_map(random.uniform(-0.5F, 0.5F), random.uniform(-0.5F, 0.5F)), random);
     }},
    {"translation",
     [](TorchRandom& random, ImageSize) {
       return any_map(translation_map(below(9, random) - 4, below(9, random) - 4), random);
     }},
};

int side(TorchRandom& random) { return 1 + below(random.chance(0.5) ? 3 : 40, random); }

Step any_crop(TorchRandom& random, ImageSize size) {
  Box box;
  box.height = 1 + below(size.height, random);
  box.width = 1 + below(size.width, random);
  box.top = below(size.height - box.height + 1, random);
  box.left = below(size.width - box.width + 1, random);
  return [box](PlannedImage& image) -> Result<void> {
    image.crop(box);
    return {};
  };
}

Step any_resize(Interpolation interpolation, TorchRandom& random) {
  return [size = ImageSize{side(random), side(random)}, interpolation](PlannedImage& image) {
    return image.resize(size, interpolation);
  };
}

// All that a change may wait behind, and what ends the waiting.
const std::vector<NamedStep> kMoves{
    {"crop", any_crop},
    {"flip", [](TorchRandom&, ImageSize) -> Step { return [](auto& image) { return image.flip_horizontally(); }; }},
    {"vertical flip",
     [](TorchRandom&, ImageSize) -> Step { return [](auto& image) { return image.flip_vertically(); }; }},
    {"nearest resize", [](TorchRandom& random, ImageSize) { return any_resize(Interpolation::kNearest, random); }},
    {"bilinear resize", [](TorchRandom& random, ImageSize) { return any_resize(Interpolation::kBilinear, random); }},
    {"border",
     [](TorchRandom&, ImageSize) -> Step {
       return [](PlannedImage& image) { return image.pad({1, 2, 0, 3, {9, 8, 7}, PaddingMode::kConstant}); };
     }},
};

struct Made {
  ImageSize size;
  std::vector<std::uint8_t> pixels;
  OpCosts costs;
};

// Steps are drawn for the size that the image has at their turn, which does not depend on the order.
Made run(OpOrder order, ImageSize size, std::uint32_t seed, const std::vector<const NamedStep*>& steps) {
  TorchRandom random(seed);
  ImageBuffers buffers;
  for (std::size_t i = 0; i < bytes_of(size); ++i)
    buffers.pixels.push_back(
        static_cast<std::uint8_t>(random.chance(0.2) ? 255 * below(2, random) : below(256, random)));
  buffers.pixels.resize(bytes_of(size) + kReadableBytesBehindPixels);
  PlannedImage image = PlannedImage::of_pixels(size, PassOrder::kWidthFirst, buffers, order);
  for (const NamedStep* step : steps) {
    image.begin(step->name);
    REQUIRE(step->draw(random, image.size())(image).ok());
    REQUIRE(image.end().ok());
  }
  Made made{image.size(), std::vector<std::uint8_t>(bytes_of(image.size())), {}};
  REQUIRE(image.write_to(made.pixels).ok());
  made.costs = buffers.costs;
  return made;
}

void check_same(std::uint32_t seed, const std::vector<const NamedStep*>& steps) {
  TorchRandom random(seed + 1);
  const ImageSize size{side(random), side(random)};
  CAPTURE(seed, size.height, size.width);
  const Made late = run(OpOrder::kExact, size, seed, steps);
  const Made wanted = run(OpOrder::kProgram, size, seed, steps);
  CHECK(late.size == wanted.size);
  CHECK(late.pixels == wanted.pixels);
}

TEST_CASE("a change behind one operation makes the same bytes as before it") {
  for (const NamedStep& change : kChanges) {
    for (const NamedStep& move : kMoves) {
      CAPTURE(change.name, move.name);
      for (std::uint32_t seed = 0; seed < 150; ++seed) check_same(seed, {&change, &move});
    }
  }
}

TEST_CASE("lists of any changes and moves make the same bytes in both orders") {
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    TorchRandom random(seed + 77);
    std::vector<const NamedStep*> steps;
    for (int count = 1 + below(8, random); count > 0; --count) {
      const auto& from = random.chance(0.5) ? kChanges : kMoves;
      steps.push_back(&from[static_cast<std::size_t>(below(static_cast<std::int64_t>(from.size()), random))]);
    }
    check_same(seed, steps);
  }
}

NamedStep fixed(std::string name, Step step) {
  return {std::move(name), [step](TorchRandom&, ImageSize) { return step; }};
}

const NamedStep kInvert = fixed("invert", each(invert));
const NamedStep kHalve = fixed("contrast", [](PlannedImage& image) { return change_contrast(0.5F, image); });
const NamedStep kTurn = fixed("turn", [](PlannedImage& image) { return rotate(30, {}, image); });
const NamedStep kCrop = fixed("crop", [](PlannedImage& image) -> Result<void> {
  image.crop({2, 3, 10, 10});
  return {};
});
const NamedStep kFlip = fixed("flip", [](PlannedImage& image) { return image.flip_horizontally(); });
const NamedStep kShrink = fixed("shrink", [](PlannedImage& image) {
  return image.resize({5, 5}, Interpolation::kBilinear);
});
const NamedStep kGrow = fixed("grow", [](PlannedImage& image) {
  return image.resize({50, 50}, Interpolation::kNearest);
});

TEST_CASE("a change costs what is left of the image when it runs, and the rest is spared") {
  constexpr ImageSize kSize{20, 20};
  constexpr std::uint64_t kWhole = 20 * 20 * 3, kPart = 10 * 10 * 3, kSmall = 5 * 5 * 3;
  struct Case {
    const char* name;
    OpOrder order;
    std::vector<const NamedStep*> steps;
    const char* op;
    std::uint64_t bytes;
    std::uint64_t spared_bytes;
  };
  const Case cases[] = {
      {"behind a crop", OpOrder::kExact, {&kInvert, &kCrop}, "invert", kPart, kWhole - kPart},
      {"in program order", OpOrder::kProgram, {&kInvert, &kCrop}, "invert", kWhole, 0},
      {"before a crop and a resize", OpOrder::kExact, {&kInvert, &kCrop, &kShrink}, "invert", kPart, kWhole - kPart},
      {"relaxed behind both", OpOrder::kRelaxed, {&kInvert, &kCrop, &kShrink}, "invert", kSmall, kWhole - kSmall},
      {"relaxed behind a resize of a mirror image",
       OpOrder::kRelaxed,
       {&kFlip, &kInvert, &kShrink},
       "invert",
       kSmall,
       kWhole - kSmall},
      {"exactly before it", OpOrder::kExact, {&kFlip, &kInvert, &kShrink}, "invert", kWhole, 0},
      {"not behind what grows", OpOrder::kRelaxed, {&kInvert, &kGrow}, "invert", kWhole, 0},
      {"nothing to wait behind", OpOrder::kExact, {&kInvert}, "invert", kWhole, 0},
      {"a blend with the mean of all", OpOrder::kExact, {&kHalve, &kCrop}, "contrast", kPart, kWhole - kPart},
      {"a map makes what is shown", OpOrder::kExact, {&kTurn, &kCrop}, "turn", kPart, kWhole - kPart},
      {"and so it does for a resize", OpOrder::kExact, {&kTurn, &kCrop, &kShrink}, "turn", kPart, kWhole - kPart},
      {"a map relaxed", OpOrder::kRelaxed, {&kTurn, &kCrop, &kShrink}, "turn", kSmall, kWhole - kSmall},
      {"a map is not mirrored", OpOrder::kRelaxed, {&kTurn, &kFlip, &kCrop}, "turn", kWhole, 0},
  };
  for (const Case& test : cases) {
    CAPTURE(test.name);
    const Cost cost = run(test.order, kSize, 1, test.steps).costs.ops.at(test.op);
    CHECK(cost.bytes == test.bytes);
    CHECK(cost.spared_bytes == test.spared_bytes);
  }
}

// All orders that come of swapping a change of each pixel and a crop or flip that stand side by side.
std::vector<std::vector<const NamedStep*>> legal_orders(const std::vector<const NamedStep*>& steps) {
  const auto is_change = [](const NamedStep* step) { return step->name == "invert" || step->name == "solarize"; };
  const auto is_move = [](const NamedStep* step) { return step->name == "crop" || step->name == "flip"; };
  std::vector<std::vector<const NamedStep*>> orders{steps};
  for (std::size_t known = 0; known < orders.size(); ++known) {
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      auto swapped = orders[known];
      if (is_change(swapped[i]) == is_change(swapped[i + 1]) || is_move(swapped[i]) == is_move(swapped[i + 1]))
        continue;
      std::swap(swapped[i], swapped[i + 1]);
      if (std::find(orders.begin(), orders.end(), swapped) == orders.end()) orders.push_back(std::move(swapped));
    }
  }
  return orders;
}

std::uint64_t changed_bytes(const Made& made) {
  std::uint64_t bytes = 0;
  for (const char* op : {"invert", "solarize"}) {
    const auto found = made.costs.ops.find(op);
    if (found != made.costs.ops.end()) bytes += found->second.bytes;
  }
  return bytes;
}

TEST_CASE("no legal order of the list changes fewer pixels than waiting does, and all make the same bytes") {
  std::size_t most_orders = 0;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    TorchRandom random(seed);
    // Crops that fit whatever stands before them: each takes the same off every side.
    const NamedStep crop = fixed("crop", [](PlannedImage& image) -> Result<void> {
      if (image.size().height > 2 && image.size().width > 2)
        image.crop({1, 1, image.size().height - 2, image.size().width - 2});
      return {};
    });
    const NamedStep solarize_half = fixed("solarize", each([](Pixels pixels) { solarize(128, pixels); }));
    const NamedStep* const all[] = {&crop, &kFlip, &kInvert, &solarize_half, &kShrink};
    std::vector<const NamedStep*> steps;
    for (int i = 0; i < 6; ++i) steps.push_back(all[below(std::size(all), random)]);

    const ImageSize size{side(random), side(random)};
    const Made late = run(OpOrder::kExact, size, seed, steps);
    std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
    const auto orders = legal_orders(steps);
    most_orders = std::max(most_orders, orders.size());
    for (const auto& order : orders) {
      const Made made = run(OpOrder::kProgram, size, seed, order);
      CHECK(made.pixels == late.pixels);
      fewest = std::min(fewest, changed_bytes(made));
    }
    CHECK(changed_bytes(late) == fewest);
  }
  CHECK(most_orders >= 6);
}

TEST_CASE("relaxed, a change that waits behind a resize makes other bytes") {
  const std::vector<const NamedStep*> steps{&kHalve, &kCrop, &kShrink};
  CHECK(run(OpOrder::kRelaxed, {20, 20}, 1, steps).pixels != run(OpOrder::kProgram, {20, 20}, 1, steps).pixels);
}

}  // namespace
}  // namespace sluice::pipeline
