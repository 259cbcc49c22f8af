// torchvision's ColorJitter on PIL images, v1 and v2: brightness, contrast and saturation are blends (Pillow's
// ImageEnhance), hue turns the H of Pillow's 8-bit HSV. The order of the four is drawn first, then their factors.
#include <algorithm>
#include <cmath>

#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/enhance.h"

namespace sluice::pipeline {
namespace {

struct Hsv {
  int hue = 0;
  int saturation = 0;
  int value = 0;
};

// As Python's colorsys, in float32 but for the steps that C makes double.
Hsv hsv_of(const std::uint8_t* rgb) {
  const int r = rgb[0];
  const int g = rgb[1];
  const int b = rgb[2];
  const int largest = std::max({r, g, b});
  const int smallest = std::min({r, g, b});
  if (largest == smallest) return {0, 0, largest};
  const auto range = static_cast<float>(largest - smallest);
  const float red = static_cast<float>(largest - r) / range;
  const float green = static_cast<float>(largest - g) / range;
  const float blue = static_cast<float>(largest - b) / range;
  float hue = 0;
  if (r == largest) {
    hue = blue - green;
  } else if (g == largest) {
    hue = static_cast<float>(2.0 + static_cast<double>(red) - static_cast<double>(blue));
  } else {
    hue = static_cast<float>(4.0 + static_cast<double>(green) - static_cast<double>(red));
  }
  const double turned = static_cast<double>(hue) / 6.0 + 1.0;
  hue = static_cast<float>(turned >= 1.0 ? turned - 1.0 : turned);  // fmod(turned, 1.0): it is below 2
  const float saturation = range / static_cast<float>(largest);
  return {static_cast<int>(static_cast<double>(hue) * 255.0), static_cast<int>(static_cast<double>(saturation) * 255.0),
          largest};
}

// The steps of the way back that depend on one byte.
struct HsvTables {
  std::array<std::uint8_t, 256> sector{};  // of the hue: 0 to 5
  std::array<double, 256> rest{};          // of the hue, within its sector
  std::array<double, 256> saturation{};

  HsvTables() {
    for (int byte = 0; byte < 256; ++byte) {
      const auto i = static_cast<std::size_t>(byte);
      const double place = static_cast<double>(byte) * 6.0 / 255.0;
      sector[i] = static_cast<std::uint8_t>(static_cast<int>(place) % 6);
      rest[i] = static_cast<double>(static_cast<float>(place - std::floor(place)));
      saturation[i] = static_cast<double>(static_cast<float>(static_cast<double>(byte) / 255.0));
    }
  }
};

// round() of a number from 0 to 255.
std::uint8_t rounded(double value) {
  const int whole = static_cast<int>(value);
  return static_cast<std::uint8_t>(whole + (value - whole >= 0.5 ? 1 : 0));
}

void set_rgb(const Hsv& hsv, const HsvTables& tables, std::uint8_t* rgb) {
  const auto hue = static_cast<std::size_t>(hsv.hue);
  const double saturation = tables.saturation[static_cast<std::size_t>(hsv.saturation)];
  const double rest = tables.rest[hue];
  const double value = hsv.value;
  enum { kV, kP, kQ, kT };
  const std::array levels{static_cast<std::uint8_t>(hsv.value), rounded(value * (1.0 - saturation)),
                          rounded(value * (1.0 - saturation * rest)),
                          rounded(value * (1.0 - saturation * (1.0 - rest)))};
  constexpr std::uint8_t kSectors[6][3] = {{kV, kT, kP}, {kQ, kV, kP}, {kP, kV, kT},
                                           {kP, kQ, kV}, {kT, kP, kV}, {kV, kP, kQ}};
  const std::uint8_t* const sector = kSectors[tables.sector[hue]];
  for (int channel = 0; channel < 3; ++channel) rgb[channel] = levels[sector[channel]];
}

void adjust_hue(float factor, Pixels pixels) {
  static const HsvTables kTables;
  const auto turn = static_cast<std::uint8_t>(static_cast<int>(static_cast<double>(factor) * 255.0));
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    Hsv hsv = hsv_of(&pixels[i]);
    hsv.hue = static_cast<std::uint8_t>(hsv.hue + turn);
    set_rgb(hsv, kTables, &pixels[i]);
  }
}

constexpr std::array kAdjust{adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue};
using Ranges = std::array<std::optional<std::array<double, 2>>, kAdjust.size()>;

class ColorJitter final : public Op {
 public:
  explicit ColorJitter(const Ranges& ranges) : ranges_(ranges) {}

  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override { return input; }

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    const std::array<int, 4> order = random.permutation_of_four();
    std::array<float, kAdjust.size()> factors{};
    for (std::size_t i = 0; i < factors.size(); ++i) {
      if (!ranges_[i]) continue;
      factors[i] = random.uniform(static_cast<float>((*ranges_[i])[0]), static_cast<float>((*ranges_[i])[1]));
    }
    SLUICE_TRY(const Pixels pixels, image.pixels());
    for (const int number : order) {
      const auto i = static_cast<std::size_t>(number);
      if (ranges_[i]) kAdjust[i](factors[i], pixels);
    }
    return {};
  }

 private:
  Ranges ranges_;
};

}  // namespace

OpPointer parse_color_jitter(JsonReader& reader) {
  constexpr std::array kNames{"brightness", "contrast", "saturation", "hue"};
  constexpr double kLargestFactor = 1e6;
  Ranges ranges;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (reader.find(kNames[i]) == nullptr) continue;
    auto& range = ranges[i].emplace();
    reader.required(kNames[i], range);
    const bool is_hue = i == 3;
    const double smallest = is_hue ? -0.5 : 0;
    const double largest = is_hue ? 0.5 : kLargestFactor;
    if (!(range[0] >= smallest && range[0] <= range[1] && range[1] <= largest))
      reader.fail(kNames[i],
                  is_hue ? "must be two rising numbers from -0.5 to 0.5" : "must be two rising numbers from 0");
  }
  return std::make_unique<ColorJitter>(ranges);
}

}  // namespace sluice::pipeline
