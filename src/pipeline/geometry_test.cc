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

GeometryPlan plan_of(std::vector<GeometricOp> ops, ImageSize image, std::optional<double> flip = {},
                     std::uint32_t seed = 0) {
  TorchRandom random(seed);
  const auto plan = plan_geometry(ops, flip, image, random);
  REQUIRE(plan.ok());
  return *plan;
}

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
    const GeometryPlan plan = plan_of({random_crop(c.scale, c.ratio, c.log_ratio)}, c.image, 0.5, c.seed);
    CHECK(plan.source == c.want);
    CHECK(plan.flip == c.want_flip);
    CHECK(plan.resized == ImageSize{224, 224});
    CHECK(plan.window == Box{0, 0, 224, 224});
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

TEST_CASE("an image of which the ratio leaves nothing is refused") {
  TorchRandom random(0);
  const std::vector<GeometricOp> ops{random_crop({1, 1}, {2, 2}, {std::log(2.0F), std::log(2.0F)})};
  const auto plan = plan_geometry(ops, {}, {900, 1}, random);
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().message() == "random_resized_crop leaves nothing of an image of 900x1");
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

TEST_CASE("a centre crop rounds half a pixel to the even one") {
  CHECK(center_crop_box({257, 341}, {224, 224}) == Box{16, 58, 224, 224});  // 16.5 and 58.5
  CHECK(center_crop_box({259, 256}, {224, 224}) == Box{18, 16, 224, 224});  // 17.5
  CHECK(center_crop_box({224, 224}, {224, 224}) == Box{0, 0, 224, 224});
}

TEST_CASE("crops before the resize cut the source, crops after it the window") {
  const GeometryPlan plan = plan_of(
      {CenterCrop{{300, 400}}, Resize{{}, {150, 200}, Interpolation::kBicubic}, CenterCrop{{100, 100}}}, {320, 500});
  CHECK(plan.source == Box{10, 50, 300, 400});
  CHECK(plan.resized == ImageSize{150, 200});
  CHECK(plan.window == Box{25, 50, 100, 100});
  CHECK(plan.interpolation == Interpolation::kBicubic);
  CHECK_FALSE(plan.flip);
}

TEST_CASE("without a resize the window is the crop itself") {
  const GeometryPlan plan = plan_of({CenterCrop{{40, 30}}, CenterCrop{{20, 20}}}, {100, 100});
  CHECK(plan.source == Box{40, 40, 20, 20});
  CHECK(plan.resized == ImageSize{20, 20});
  CHECK(plan.window == Box{0, 0, 20, 20});
}

TEST_CASE("a centre crop that would pad is refused") {
  TorchRandom random(0);
  const std::vector<GeometricOp> ops{CenterCrop{{224, 224}}};
  const auto plan = plan_geometry(ops, {}, {200, 300}, random);
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().code() == ErrorCode::kInvalidArgument);
  CHECK(plan.error().message() ==
        "center_crop to 224x224 would have to pad an image of 200x300; resize first, or use the Python pipeline");
}

TEST_CASE("a flip draws one number, no flip draws none") {
  int flips = 0;
  for (std::uint32_t seed = 0; seed < 1000; ++seed) flips += plan_of({}, {8, 8}, 0.3, seed).flip ? 1 : 0;
  CHECK((flips > 250 && flips < 350));
  CHECK_FALSE(plan_of({}, {8, 8}, 0.0).flip);
  CHECK(plan_of({}, {8, 8}, 1.0).flip);

  TorchRandom random(0);
  TorchRandom untouched(0);
  REQUIRE(plan_geometry({}, {}, {8, 8}, random).ok());
  CHECK(random.rand() == untouched.rand());
}

TEST_CASE("the order of the passes is Pillow's") {
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
  }
}

}  // namespace
}  // namespace sluice::pipeline
