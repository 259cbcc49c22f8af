#include "src/pipeline/geometry.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace sluice::pipeline {
namespace {

// Python's round(): halves go to the even number, which is the default rounding mode of nearbyint.
int python_round(double value) { return static_cast<int>(std::nearbyint(value)); }

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

}  // namespace

bool GeometryPlan::height_first(PassOrder order) const {
  const int lost_height = source.height - resized.height;
  if (lost_height <= 0 || is_of_tensors(interpolation)) return false;
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

ImageSize shorter_side_resized(ImageSize image, int shorter_side, std::optional<int> max_size) {
  const auto [shorter, longer] = std::minmax(image.height, image.width);
  int new_shorter = shorter_side;
  const double exact_longer = static_cast<double>(static_cast<std::int64_t>(shorter_side) * longer) / shorter;
  auto new_longer = static_cast<int>(std::min(exact_longer, static_cast<double>(std::numeric_limits<int>::max())));
  if (max_size && new_longer > *max_size) {
    const auto product = static_cast<double>(static_cast<std::int64_t>(*max_size) * new_shorter);
    new_shorter = static_cast<int>(product / new_longer);
    new_longer = *max_size;
  }
  return image.width <= image.height ? ImageSize{new_longer, new_shorter} : ImageSize{new_shorter, new_longer};
}

Box center_crop_box(ImageSize image, ImageSize crop) {
  return {python_round((image.height - crop.height) / 2.0), python_round((image.width - crop.width) / 2.0), crop.height,
          crop.width};
}

PlanBuilder::PlanBuilder(ImageSize input)
    : input_(input), plan_{{0, 0, input.height, input.width}, input, {}, false, {}, false} {
  show_everything();
}

bool PlanBuilder::is_identity() const { return only_crops() && current() == input_; }

void PlanBuilder::crop(Box box) {
  if (plan_.flip) box.left = current().width - box.left - box.width;
  if (plan_.flip_vertical) box.top = current().height - box.top - box.height;
  Box& target = is_resized_ ? plan_.window : plan_.source;
  target = {target.top + box.top, target.left + box.left, box.height, box.width};
  if (is_resized_) return;
  plan_.resized = {box.height, box.width};
  show_everything();
}

void PlanBuilder::resize(ImageSize size, Interpolation interpolation) {
  plan_.resized = size;
  plan_.interpolation = interpolation;
  is_resized_ = true;
  show_everything();
}

}  // namespace sluice::pipeline
