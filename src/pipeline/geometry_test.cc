#include "src/pipeline/geometry.h"

#include <cmath>
#include <ostream>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {

std::ostream& operator<<(std::ostream& out, const Box& box) {
  return out << box.top << ',' << box.left << ' ' << box.height << 'x' << box.width;
}
std::ostream& operator<<(std::ostream& out, const ImageSize& size) { return out << size.height << 'x' << size.width; }

namespace {

RandomResizedCrop random_crop(std::array<double, 2> scale, std::array<double, 2> ratio,
                              std::array<float, 2> log_ratio) {
  return {{224, 224}, scale, ratio, log_ratio, Interpolation::kBilinear};
}

const RandomResizedCrop kTrainingCrop =
    random_crop({0.08, 1}, {0.75, 1.3333333333333333}, {-0x1.26962p-2F, 0x1.269624p-2F});

TEST_CASE("random crops and flips are what torchvision 0.29 draws") {
  struct Case {
    ImageSize image;
    std::uint32_t seed;
    std::array<double, 2> scale, ratio;
    std::array<float, 2> log_ratio;
    Box want;
    bool want_flip;
  };
  // Printed by RandomResizedCrop.get_params and torch.rand(1) < 0.5 after torch.manual_seed(seed).
  const Case cases[] = {
      {{375, 500},
       0,
       {0.08, 1},
       {0.75, 1.3333333333333333},
       {-0x1.26962p-2F, 0x1.269624p-2F},
       {17, 80, 294, 343},
       true},
      {{375, 500},
       1,
       {0.08, 1},
       {0.75, 1.3333333333333333},
       {-0x1.26962p-2F, 0x1.269624p-2F},
       {71, 153, 272, 311},
       true},
      {{1, 1}, 2, {0.08, 1}, {0.75, 1.3333333333333333}, {-0x1.26962p-2F, 0x1.269624p-2F}, {0, 0, 1, 1}, false},
      {{10, 900}, 3, {0.08, 1}, {0.75, 1.3333333333333333}, {-0x1.26962p-2F, 0x1.269624p-2F}, {0, 443, 10, 13}, false},
      {{900, 10}, 4, {0.08, 1}, {0.75, 1.3333333333333333}, {-0x1.26962p-2F, 0x1.269624p-2F}, {443, 0, 13, 10}, false},
      {{480, 640},
       5,
       {0.2, 1},
       {0.75, 1.3333333333333333},
       {-0x1.26962p-2F, 0x1.269624p-2F},
       {120, 232, 298, 342},
       false},
      {{700, 1024},
       4294967295,
       {0.08, 1},
       {0.75, 1.3333333333333333},
       {-0x1.26962p-2F, 0x1.269624p-2F},
       {3, 19, 652, 687},
       false},
      {{224, 224}, 8, {1, 1}, {1, 1}, {0, 0}, {0, 0, 224, 224}, false},
      {{33, 47}, 9, {0.9, 1}, {0.5, 2}, {-0x1.62e43p-1F, 0x1.62e43p-1F}, {0, 0, 32, 46}, true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.image, c.seed);
    TorchRandom random(c.seed);
    CHECK(random_resized_crop_box(random_crop(c.scale, c.ratio, c.log_ratio), c.image, random) == c.want);
    CHECK(random.chance(0.5) == c.want_flip);
  }
}

TEST_CASE("the crop box is always inside the image") {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    TorchRandom shape(seed);
    const ImageSize image{static_cast<int>(shape.randint(2, 300)), static_cast<int>(shape.randint(2, 300))};
    const Box box = random_resized_crop_box(kTrainingCrop, image, shape);
    CAPTURE(seed, image, box);
    CHECK((box.top >= 0 && box.left >= 0 && box.height > 0 && box.width > 0));
    CHECK((box.top + box.height <= image.height && box.left + box.width <= image.width));
  }
}

TEST_CASE("the ratio can leave nothing of an image") {
  TorchRandom random(0);
  const Box box =
      random_resized_crop_box(random_crop({1, 1}, {2, 2}, {std::log(2.0F), std::log(2.0F)}), {900, 1}, random);
  CHECK(box.height == 0);
}

TEST_CASE("a resize by the shorter side truncates the longer one") {
  struct Case {
    ImageSize image;
    int side;
    ImageSize want;
  };
  for (const Case& c : {Case{{375, 500}, 256, {256, 341}}, Case{{500, 375}, 256, {341, 256}},
                        Case{{300, 300}, 256, {256, 256}}, Case{{100, 399}, 50, {50, 199}},
                        Case{{1, 65500}, 16384, {16384, 1073152000}}, Case{{256, 300}, 256, {256, 300}}}) {
    CAPTURE(c.image, c.side);
    CHECK(shorter_side_resized(c.image, c.side) == c.want);
  }
}

TEST_CASE("a longer side above the largest shrinks both") {
  CHECK(shorter_side_resized({375, 500}, 256, 300) == ImageSize{225, 300});  // 256x341, then 256 * 300 / 341
  CHECK(shorter_side_resized({375, 500}, 256, 341) == ImageSize{256, 341});
  CHECK(shorter_side_resized({2, 60000}, 16, 32) == ImageSize{0, 32});
}

TEST_CASE("a centre crop rounds half a pixel to the even one") {
  CHECK(center_crop_box({257, 341}, {224, 224}) == Box{16, 58, 224, 224});  // 16.5 and 58.5
  CHECK(center_crop_box({259, 256}, {224, 224}) == Box{18, 16, 224, 224});  // 17.5
  CHECK(center_crop_box({224, 224}, {224, 224}) == Box{0, 0, 224, 224});
}

TEST_CASE("crops before the resize cut the source, crops after it the window") {
  PlanBuilder plan({320, 500});
  plan.crop({10, 50, 300, 400});
  plan.resize({150, 200}, Interpolation::kBicubic);
  plan.crop({25, 50, 100, 100});
  CHECK(plan.plan().source == Box{10, 50, 300, 400});
  CHECK(plan.plan().resized == ImageSize{150, 200});
  CHECK(plan.plan().window == Box{25, 50, 100, 100});
  CHECK(plan.plan().interpolation == Interpolation::kBicubic);
  CHECK_FALSE(plan.plan().flip);
  CHECK_FALSE(plan.can_resize());
}

TEST_CASE("without a resize the window is the crop itself") {
  PlanBuilder plan({100, 100});
  CHECK(plan.is_identity());
  plan.crop({30, 35, 40, 30});
  plan.crop({10, 5, 20, 20});
  CHECK(plan.plan().source == Box{40, 40, 20, 20});
  CHECK(plan.plan().resized == ImageSize{20, 20});
  CHECK(plan.plan().window == Box{0, 0, 20, 20});
  CHECK(plan.can_resize());
  CHECK_FALSE(plan.is_identity());
}

TEST_CASE("a crop of a mirrored image is the mirrored crop") {
  PlanBuilder plan({100, 200});
  plan.flip_horizontally();
  CHECK_FALSE(plan.can_resize());
  plan.flip_vertically();
  plan.crop({10, 20, 30, 40});
  CHECK(plan.plan().source == Box{60, 140, 30, 40});
  plan.flip_horizontally();
  plan.flip_vertically();
  plan.crop({1, 2, 3, 4});
  CHECK(plan.plan().source == Box{61, 142, 3, 4});
  CHECK(plan.can_resize());
}

TEST_CASE("the order of the passes is Pillow's, and a tensor's width goes first") {
  struct Case {
    ImageSize source, resized;
    bool want_pillow_13;
  };
  for (const Case& c :
       {Case{{318, 262}, {224, 224}, true}, Case{{375, 500}, {224, 224}, false}, Case{{227, 225}, {224, 224}, true},
        Case{{226, 225}, {224, 224}, false}, Case{{225, 100}, {224, 224}, true}, Case{{224, 100}, {224, 224}, false}}) {
    CAPTURE(c.source, c.resized);
    const GeometryPlan plan{{0, 0, c.source.height, c.source.width}, c.resized, {}, false, {}};
    CHECK(plan.height_first(PassOrder::kHeightFirstIfShrunkMore) == c.want_pillow_13);
    CHECK_FALSE(plan.height_first(PassOrder::kWidthFirst));
    const GeometryPlan of_tensor{plan.source, c.resized, {}, false, Interpolation::kTensorBicubic};
    CHECK_FALSE(of_tensor.height_first(PassOrder::kHeightFirstIfShrunkMore));
  }
}

}  // namespace
}  // namespace sluice::pipeline
