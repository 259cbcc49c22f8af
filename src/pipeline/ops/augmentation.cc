#include "src/pipeline/ops/augmentation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "src/pipeline/ops/enhance.h"
#include "src/pipeline/ops/fields.h"
#include "src/pipeline/ops/image_changes.h"

namespace sluice::pipeline {

struct AugmentationKind {
  using Apply = Result<void> (*)(double magnitude, const AffineStyle& style, PlannedImage& image);
  std::string_view name;
  Apply apply;
  double smallest = 0;
  double largest = 0;
  bool is_whole = false;
};

namespace {

// torchvision's blends take 1 + magnitude.
float factor_of(double magnitude) { return static_cast<float>(1.0 + magnitude); }

template <Result<void> (*kChange)(float, PlannedImage&)>
Result<void> blend_by(double magnitude, const AffineStyle& /*style*/, PlannedImage& image) {
  return kChange(factor_of(magnitude), image);
}

template <Result<void> (*kChange)(PlannedImage&)>
Result<void> change(double /*magnitude*/, const AffineStyle& /*style*/, PlannedImage& image) {
  return kChange(image);
}

constexpr double kAnyLevel = 1e6;
constexpr double kAnyDegrees = 1e6;
constexpr double kAnyShear = 100;

constexpr std::array kKinds{
    AugmentationKind{"identity", [](double, const AffineStyle&, PlannedImage&) -> Result<void> { return {}; }},
    AugmentationKind{"shear_x",
                     [](double magnitude, const AffineStyle& style, PlannedImage& image) {
                       return transform(shear_map(std::atan(magnitude), 0.0), style, image);
                     },
                     -kAnyShear, kAnyShear},
    AugmentationKind{"shear_y",
                     [](double magnitude, const AffineStyle& style, PlannedImage& image) {
                       return transform(shear_map(0.0, std::atan(magnitude)), style, image);
                     },
                     -kAnyShear, kAnyShear},
    AugmentationKind{"translate_x",
                     [](double magnitude, const AffineStyle& style, PlannedImage& image) {
                       return transform(translation_map(magnitude, 0.0), style, image);
                     },
                     -kMaxSidePixels, kMaxSidePixels, true},
    AugmentationKind{"translate_y",
                     [](double magnitude, const AffineStyle& style, PlannedImage& image) {
                       return transform(translation_map(0.0, magnitude), style, image);
                     },
                     -kMaxSidePixels, kMaxSidePixels, true},
    AugmentationKind{"rotate", rotate, -kAnyDegrees, kAnyDegrees},
    AugmentationKind{"brightness", blend_by<change_brightness>, -kAnyLevel, kAnyLevel},
    AugmentationKind{"color", blend_by<change_saturation>, -kAnyLevel, kAnyLevel},
    AugmentationKind{"contrast", blend_by<change_contrast>, -kAnyLevel, kAnyLevel},
    AugmentationKind{"sharpness", blend_by<change_sharpness>, -kAnyLevel, kAnyLevel},
    AugmentationKind{"posterize",
                     [](double magnitude, const AffineStyle&, PlannedImage& image) -> Result<void> {
                       image.change_each(
                           [bits = static_cast<int>(magnitude)](Pixels pixels) { posterize(bits, pixels); });
                       return {};
                     },
                     1, 8, true},
    AugmentationKind{"solarize",
                     [](double magnitude, const AffineStyle&, PlannedImage& image) -> Result<void> {
                       image.change_each([magnitude](Pixels pixels) { solarize(magnitude, pixels); });
                       return {};
                     },
                     -kAnyLevel, kAnyLevel},
    AugmentationKind{"autocontrast", change<stretch_contrast>},
    AugmentationKind{"tensor_autocontrast", change<stretch_tensor_contrast>},
    AugmentationKind{"tensor_sharpness",
                     [](double magnitude, const AffineStyle&, PlannedImage& image) {
                       return change_tensor_sharpness(magnitude, image);
                     },
                     -1, kAnyLevel},
    AugmentationKind{"equalize", change<equalize_levels>},
    AugmentationKind{"invert",
                     [](double, const AffineStyle&, PlannedImage& image) -> Result<void> {
                       image.change_each(invert);
                       return {};
                     }},
};

bool takes(const AugmentationKind& kind, double magnitude) {
  return magnitude >= kind.smallest && magnitude <= kind.largest &&
         (!kind.is_whole || magnitude == std::floor(magnitude));
}

constexpr std::size_t kMaxMagnitudes = 256;

}  // namespace

Augmentation Augmentation::read(JsonReader& reader) {
  Augmentation augmentation;
  std::string name;
  reader.required("name", name);
  augmentation.kind_ = std::find_if(kKinds.begin(), kKinds.end(), [&](const auto& kind) { return kind.name == name; });
  if (augmentation.kind_ == kKinds.end()) reader.fail("name", "\"" + name + "\" is not a native augmentation");
  if (reader.find("magnitudes") != nullptr) reader.required("magnitudes", augmentation.magnitudes_);
  if (const auto* is_signed = reader.find("signed")) {
    if (!is_signed->is_boolean()) reader.fail("signed", "must be true or false");
    augmentation.is_signed_ = *is_signed == true;
  }
  if (reader.error()) return augmentation;
  const auto is_refused = [&](double magnitude) {
    const AugmentationKind& kind = *augmentation.kind_;
    return !takes(kind, magnitude) || (augmentation.is_signed_ && !takes(kind, -magnitude));
  };
  const auto& magnitudes = augmentation.magnitudes_;
  if (magnitudes.empty() || magnitudes.size() > kMaxMagnitudes ||
      std::any_of(magnitudes.begin(), magnitudes.end(), is_refused))
    reader.fail("magnitudes", "must be 1 to 256 numbers that " + name + " takes");
  return augmentation;
}

Result<void> Augmentation::apply(double magnitude, const AffineStyle& style, PlannedImage& image) const {
  return kind_->apply(magnitude, style, image);
}

AffineStyle read_affine_style(JsonReader& reader) {
  AffineStyle style;
  if (reader.find("interpolation") != nullptr) style.interpolation = read_interpolation(reader);
  if (style.interpolation != Interpolation::kNearest && style.interpolation != Interpolation::kBilinear)
    reader.fail("interpolation", "must be \"nearest\" or \"bilinear\" here");
  style.fill = read_fill(reader);
  return style;
}

}  // namespace sluice::pipeline
