#include "src/pipeline/image_library.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/jpeg_encoder.h"

namespace sluice::pipeline {
namespace {

using Bytes = std::vector<std::uint8_t>;

// All of an image of 90 x 120, as it is.
constexpr SluiceImagePlan kWhole{
    .image_height = 90,
    .image_width = 120,
    .source_height = 90,
    .source_width = 120,
    .resized_height = 90,
    .resized_width = 120,
    .window_height = 90,
    .window_width = 120,
    .interpolation = 2,
    .pillow = 13,
};

SluiceImagePlan changed(const std::function<void(SluiceImagePlan&)>& change) {
  SluiceImagePlan plan = kWhole;
  change(plan);
  return plan;
}

Bytes planned_pixels(const Bytes& file, const SluiceImagePlan& plan) {
  Bytes pixels(static_cast<std::size_t>(plan.window_height) * static_cast<std::size_t>(plan.window_width) * 3);
  REQUIRE(sluice_image_pixels(file.data(), file.size(), &plan, pixels.data(), pixels.size()) == 0);
  return pixels;
}

std::array<std::uint8_t, 3> pixel(const Bytes& pixels, int width, int y, int x) {
  const auto at = (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)) * 3;
  return {pixels[at], pixels[at + 1], pixels[at + 2]};
}

TEST_CASE("A crop without a resize shows the whole image's pixels, mirrored or not") {
  const Bytes file = testing::encode_picture({90, 120}, {});
  const Bytes whole = planned_pixels(file, kWhole);
  SluiceImagePlan plan = changed([](SluiceImagePlan& p) {
    p.source_top = 11, p.source_left = 17;
    p.source_height = p.resized_height = 40;
    p.source_width = p.resized_width = 50;
    p.window_top = 3, p.window_left = 5, p.window_height = 30, p.window_width = 41;
  });
  for (const int flip : {0, 1}) {
    plan.flip = flip;
    const Bytes part = planned_pixels(file, plan);
    for (int y = 0; y < 30; ++y) {
      for (int x = 0; x < 41; ++x) {
        const int column = 17 + 5 + (flip == 1 ? 40 - x : x);
        REQUIRE(pixel(part, 41, y, x) == pixel(whole, 120, 11 + 3 + y, column));
      }
    }
  }
}

TEST_CASE("A window of a resized image shows the whole resized image's pixels") {
  const Bytes file = testing::encode_picture({90, 120}, {});
  SluiceImagePlan plan = changed([](SluiceImagePlan& p) {
    p.resized_height = p.window_height = 64;
    p.resized_width = p.window_width = 48;
  });
  const Bytes whole = planned_pixels(file, plan);
  plan.window_top = 7, plan.window_left = 9, plan.window_height = 20, plan.window_width = 30;
  const Bytes part = planned_pixels(file, plan);
  for (int y = 0; y < 20; ++y) {
    for (int x = 0; x < 30; ++x) REQUIRE(pixel(part, 30, y, x) == pixel(whole, 48, 7 + y, 9 + x));
  }
}

TEST_CASE("a part of decoded pixels is that of the file") {
  const Bytes file = testing::encode_picture({90, 120}, {});
  Bytes image = planned_pixels(file, kWhole);
  image.resize(image.size() + kSluiceReadableBytesBehindPixels);
  for (const int flip : {0, 1}) {
    for (const int resized : {40, 64}) {
      const SluiceImagePlan plan = changed([&](SluiceImagePlan& p) {
        p.source_top = 11, p.source_left = 70, p.source_height = 40, p.source_width = 50;
        p.resized_height = resized, p.resized_width = resized + 10;
        p.window_top = 3, p.window_left = 5, p.window_height = 30, p.window_width = 41;
        p.flip = flip;
      });
      const Bytes want = planned_pixels(file, plan);
      Bytes part(want.size());
      CHECK(sluice_image_part(image.data(), image.size(), &plan, part.data(), part.size()) == 0);
      CHECK(part == want);
      CHECK(sluice_image_part(image.data(), image.size() - 1, &plan, part.data(), part.size()) != 0);
      CHECK(sluice_image_part(image.data(), image.size(), &plan, part.data(), part.size() - 1) != 0);
    }
  }
  CHECK(sluice_image_part(nullptr, 0, &kWhole, image.data(), image.size()) != 0);
}

TEST_CASE("Pillow's major version decides which pass of a resize goes first") {
  const Bytes file = testing::encode_picture({90, 120}, {});
  const auto shrunk = [&](int pillow) {
    return planned_pixels(file, changed([pillow](SluiceImagePlan& p) {
                            p.resized_height = p.window_height = 20;
                            p.resized_width = p.window_width = 110;
                            p.pillow = pillow;
                          }));
  };
  CHECK(shrunk(12) != shrunk(13));
  CHECK(shrunk(14) == shrunk(13));
}

TEST_CASE("Plans that do not fit the image are refused") {
  struct Case {
    std::string_view name;
    std::function<void(SluiceImagePlan&)> change;
  };
  constexpr std::int32_t kHuge = 2'000'000'000;
  const Case cases[] = {
      {"another height than the file's", [](auto& p) { p.image_height = 91; }},
      {"another width than the file's", [](auto& p) { p.image_width = 121; }},
      {"no width", [](auto& p) { p.image_width = 0; }},
      {"source below the image", [](auto& p) { p.source_top = 1; }},
      {"source right of the image", [](auto& p) { p.source_left = 1; }},
      {"source above the image", [](auto& p) { p.source_top = -1, p.source_height = 89; }},
      {"an empty source", [](auto& p) { p.source_height = 0; }},
      {"a source far away", [](auto& p) { p.source_left = kHuge; }},
      {"resized to nothing", [](auto& p) { p.resized_width = 0; }},
      {"resized to more than memory", [](auto& p) { p.resized_width = p.resized_height = kHuge; }},
      {"window outside", [](auto& p) { p.window_left = 1; }},
      {"window of negative height", [](auto& p) { p.window_height = -90; }},
      {"a filter it does not know", [](auto& p) { p.interpolation = 1; }},
  };
  const Bytes file = testing::encode_picture({90, 120}, {});
  Bytes pixels(std::size_t{90} * 120 * 3);
  for (const Case& c : cases) {
    INFO(c.name);
    const SluiceImagePlan plan = changed(c.change);
    CHECK(sluice_image_pixels(file.data(), file.size(), &plan, pixels.data(), pixels.size()) != 0);
  }
  CHECK(sluice_image_pixels(file.data(), file.size(), &kWhole, pixels.data(), pixels.size() - 1) != 0);
  CHECK(sluice_image_pixels(nullptr, 0, &kWhole, pixels.data(), pixels.size()) != 0);
  CHECK(planned_pixels(file, kWhole).size() == pixels.size());  // afterwards it still works
}

TEST_CASE("Files that are cut off, damaged or no JPEG are refused") {
  const Bytes good = testing::encode_picture({90, 120}, {});
  Bytes cut_off(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.size() / 2));
  Bytes damaged = good;  // its end is there, half of the data is not
  damaged.erase(damaged.begin() + static_cast<std::ptrdiff_t>(good.size() / 2), damaged.end() - 2);
  Bytes pixels(std::size_t{90} * 120 * 3);
  for (const Bytes& file : {cut_off, damaged, Bytes{0x89, 'P', 'N', 'G'}, Bytes{0}}) {
    CHECK(sluice_image_pixels(file.data(), file.size(), &kWhole, pixels.data(), pixels.size()) != 0);
  }
  CHECK(planned_pixels(good, kWhole).size() == pixels.size());
}

TEST_CASE("A tensor has each byte's share of 255, channel by channel") {
  constexpr std::size_t kPixels = 256;
  Bytes pixels(kPixels * 3);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7);
  std::array<float, kPixels * 3> tensor{};
  sluice_image_tensor(pixels.data(), kPixels, tensor.data());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    REQUIRE(tensor[i % 3 * kPixels + i / 3] == static_cast<float>(pixels[i]) / 255.0F);
  }
}

TEST_CASE("Normalised elements lose their channel's mean and are divided by its deviation") {
  const std::array<float, 6> tensor{0.0F, 1.0F, 0.5F, 0.25F, 1.0F / 3, 0.75F};
  const std::array<float, 3> mean{0.5F, 0.1F, 1.0F / 7};
  const std::array<float, 3> deviation{0.25F, 0.3F, 3.0F};
  std::array<float, 6> normalized{};
  sluice_image_normalize(tensor.data(), 2, mean.data(), deviation.data(), normalized.data());
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    const float difference = tensor[i] - mean[i / 2];
    CHECK(normalized[i] == difference / deviation[i / 2]);
  }
}

TEST_CASE("The version is the header's") { CHECK(sluice_image_library_version() == kSluiceImageLibraryVersion); }

TEST_CASE("Changes that the library does not know are refused and write nothing") {
  const Bytes grey(std::size_t{3} * 4, 100);
  Bytes adjusted(grey.size(), 1);
  for (const std::int32_t change : {-1, 4}) {
    CHECK(sluice_image_adjust(change, 0.25F, grey.data(), 4, adjusted.data()) != 0);
  }
  CHECK(sluice_image_adjust(3, 0.51F, grey.data(), 4, adjusted.data()) != 0);
  CHECK(sluice_image_adjust(0, std::nanf(""), grey.data(), 4, adjusted.data()) != 0);
  CHECK(adjusted == Bytes(grey.size(), 1));
  CHECK(sluice_image_adjust(0, 0.5F, grey.data(), 4, adjusted.data()) == 0);
  CHECK(adjusted == Bytes(grey.size(), 50));
}

TEST_CASE("Blurs of no image, or with no window for it, are refused and write nothing") {
  const Bytes grey(std::size_t{3} * 4 * 5, 100);
  const std::vector<float> weights(9, 1.0F / 9);
  const auto blurred = [&](const SluiceImageBlur& blur, Bytes& pixels) {
    return sluice_image_blur(grey.data(), &blur, pixels.data()) == 0;
  };
  constexpr std::int32_t kHuge = 2'000'000'000;
  Bytes pixels(grey.size(), 1);
  CHECK_FALSE(blurred({0, 5, 3, 3, weights.data()}, pixels));
  CHECK_FALSE(blurred({kHuge, kHuge, 3, 3, weights.data()}, pixels));
  CHECK_FALSE(blurred({4, 5, -3, -3, weights.data()}, pixels));
  CHECK_FALSE(blurred({4, 5, kHuge, kHuge, weights.data()}, pixels));
  CHECK_FALSE(blurred({4, 5, 3, 2, weights.data()}, pixels));
  CHECK_FALSE(blurred({4, 5, 3, 3, nullptr}, pixels));
  CHECK(pixels == Bytes(grey.size(), 1));
  CHECK(blurred({4, 5, 3, 3, weights.data()}, pixels));
  CHECK(pixels == grey);
}

}  // namespace
}  // namespace sluice::pipeline
