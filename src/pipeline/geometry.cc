#include "src/pipeline/geometry.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace sluice::pipeline {
namespace {

// Python's round(): halves go to the even number, which is the default rounding mode of nearbyint.
int python_round(double value) { return static_cast<int>(std::nearbyint(value)); }

std::string text_of(ImageSize size) { return std::to_string(size.height) + "x" + std::to_string(size.width); }

Box fallback_crop_box(const std::array<double, 2>& ratio, ImageSize image) {
  const double smallest = std::min(ratio[0], ratio[1]);
  const double largest = std::max(ratio[0], ratio[1]);
  const double image_ratio = static_cast<double>(image.width) / static_cast<double>(image.height);
  ImageSize crop = image;
  if (image_ratio < smallest) {
    crop.height = python_round(image.width / smallest);
  } else if (image_ratio > largest) {
    crop.width = python_round(image.height * largest);
  }
  // Here torchvision divides whole numbers, unlike CenterCrop.
  return {(image.height - crop.height) / 2, (image.width - crop.width) / 2, crop.height, crop.width};
}

// The geometry applied so far. Crops before the resize shrink `source`, later ones shrink `window`.
class PlanBuilder {
 public:
  explicit PlanBuilder(ImageSize image) : plan_{{0, 0, image.height, image.width}, image, {}, false, {}} {
    show_everything();
  }

  ImageSize current() const { return {plan_.window.height, plan_.window.width}; }

  void crop(const Box& box) {
    Box& target = is_resized_ ? plan_.window : plan_.source;
    target = {target.top + box.top, target.left + box.left, box.height, box.width};
    if (is_resized_) return;
    plan_.resized = {box.height, box.width};
    show_everything();
  }

  void resize(ImageSize size, Interpolation interpolation) {
    plan_.resized = size;
    plan_.interpolation = interpolation;
    is_resized_ = true;
    show_everything();
  }

  GeometryPlan finish(bool flip) {
    plan_.flip = flip;
    return plan_;
  }

 private:
  void show_everything() { plan_.window = {0, 0, plan_.resized.height, plan_.resized.width}; }

  GeometryPlan plan_;
  bool is_resized_ = false;
};

}  // namespace

bool GeometryPlan::height_first(PassOrder order) const {
  const int lost_height = source.height - resized.height;
  if (lost_height <= 0) return false;
  switch (order) {
    case PassOrder::kHeightFirstIfShrunkMore: return lost_height > 2 * (source.width - resized.width);
    case PassOrder::kWidthFirst: return false;
  }
  return false;
}

Box random_resized_crop_box(const RandomResizedCrop& op, ImageSize image, TorchRandom& random) {
  constexpr int kAttempts = 10;
  const double area = static_cast<double>(image.height) * image.width;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double target_area = area * random.uniform(static_cast<float>(op.scale[0]), static_cast<float>(op.scale[1]));
    const float log_aspect = random.uniform(op.log_ratio[0], op.log_ratio[1]);
    const double aspect = static_cast<float>(std::exp(static_cast<double>(log_aspect)));

    const double width = std::nearbyint(std::sqrt(target_area * aspect));
    const double height = std::nearbyint(std::sqrt(target_area / aspect));
    if (width > 0 && width <= image.width && height > 0 && height <= image.height) {
      const ImageSize crop{static_cast<int>(height), static_cast<int>(width)};
      const auto top = random.randint(0, image.height - crop.height + 1);
      const auto left = random.randint(0, image.width - crop.width + 1);
      return {static_cast<int>(top), static_cast<int>(left), crop.height, crop.width};
    }
  }
  return fallback_crop_box(op.ratio, image);
}

ImageSize shorter_side_resized(ImageSize image, int shorter_side) {
  const auto [shorter, longer] = std::minmax(image.height, image.width);
  const auto new_longer =
      static_cast<int>(static_cast<double>(static_cast<std::int64_t>(shorter_side) * longer) / shorter);
  return image.width <= image.height ? ImageSize{new_longer, shorter_side} : ImageSize{shorter_side, new_longer};
}

Box center_crop_box(ImageSize image, ImageSize crop) {
  return {python_round((image.height - crop.height) / 2.0), python_round((image.width - crop.width) / 2.0), crop.height,
          crop.width};
}

Result<GeometryPlan> plan_geometry(std::span<const GeometricOp> ops, std::optional<double> flip_probability,
                                   ImageSize image, TorchRandom& random) {
  PlanBuilder plan(image);
  for (const GeometricOp& op : ops) {
    if (const auto* crop = std::get_if<RandomResizedCrop>(&op)) {
      const Box box = random_resized_crop_box(*crop, plan.current(), random);
      if (box.height <= 0 || box.width <= 0) {
        return invalid_argument("random_resized_crop leaves nothing of an image of " + text_of(image));
      }
      plan.crop(box);
      plan.resize(crop->size, crop->interpolation);
    } else if (const auto* resize = std::get_if<Resize>(&op)) {
      plan.resize(resize->shorter_side ? shorter_side_resized(plan.current(), *resize->shorter_side) : resize->size,
                  resize->interpolation);
    } else if (const auto* center = std::get_if<CenterCrop>(&op)) {
      const ImageSize current = plan.current();
      if (center->size.height > current.height || center->size.width > current.width) {
        return invalid_argument("center_crop to " + text_of(center->size) + " would have to pad an image of " +
                                text_of(current) + "; resize first, or use the Python pipeline");
      }
      plan.crop(center_crop_box(current, center->size));
    }
  }
  // torch compares its float32 draw with the probability rounded to float32.
  const bool flip = flip_probability && random.rand() < static_cast<float>(*flip_probability);
  return plan.finish(flip);
}

}  // namespace sluice::pipeline
