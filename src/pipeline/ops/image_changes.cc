#include "src/pipeline/ops/image_changes.h"

#include <utility>

#include "src/pipeline/ops/enhance.h"
#include "src/pipeline/ops/tensor_color.h"

namespace sluice::pipeline {
namespace {

Result<void> change_each(ChangeEach change, PlannedImage& image) {
  image.change_each(std::move(change));
  return {};
}

// `exactly`: from all pixels, what is to be done to each.
template <typename Exactly>
Result<void> change_by_all(Exactly exactly, PlannedImage& image) {
  if (image.is_relaxed()) return change_each([exactly](Pixels pixels) { exactly(pixels)(pixels); }, image);
  SLUICE_TRY(const Pixels pixels, image.pixels());
  return change_each(exactly(pixels), image);
}

ChangeEach look_up_in(const ChannelTables& tables) {
  return [tables](Pixels pixels) { look_up(tables, pixels); };
}

}  // namespace

Result<void> change_brightness(float factor, PlannedImage& image) {
  return change_each([factor](Pixels pixels) { adjust_brightness(factor, pixels); }, image);
}

Result<void> change_contrast(float factor, PlannedImage& image) {
  const auto blend_with_mean = [factor](Pixels all) -> ChangeEach {
    return [level = mean_grey(all), factor](Pixels pixels) { blend_from_level(level, factor, pixels); };
  };
  return change_by_all(blend_with_mean, image);
}

Result<void> change_saturation(float factor, PlannedImage& image) {
  return change_each([factor](Pixels pixels) { adjust_saturation(factor, pixels); }, image);
}

Result<void> change_hue(float factor, PlannedImage& image) {
  return change_each([factor](Pixels pixels) { adjust_hue(factor, pixels); }, image);
}

Result<void> change_sharpness(float factor, PlannedImage& image) {
  const auto sharpen = [factor](std::span<const std::uint8_t> from, ImageSize size, const Box& part, Pixels to) {
    adjust_sharpness(factor, size, from, part, to);
  };
  return image.replace(sharpen, PlannedImage::Scale::kIsFree);
}

Result<void> stretch_contrast(PlannedImage& image) {
  return change_by_all([](Pixels all) { return look_up_in(autocontrast_tables(all)); }, image);
}

Result<void> equalize_levels(PlannedImage& image) {
  return change_by_all([](Pixels all) { return look_up_in(equalize_tables(all)); }, image);
}

Result<void> change_tensor_brightness(float factor, PlannedImage& image) {
  return change_each([factor](Pixels pixels) { blend_tensor_from_level(0, factor, pixels); }, image);
}

Result<void> change_tensor_contrast(float factor, PlannedImage& image) {
  const auto blend_with_mean = [factor](Pixels all) -> ChangeEach {
    return
        [level = mean_grey_of_tensor(all), factor](Pixels pixels) { blend_tensor_from_level(level, factor, pixels); };
  };
  return change_by_all(blend_with_mean, image);
}

Result<void> change_tensor_saturation(float factor, PlannedImage& image) {
  return change_each([factor](Pixels pixels) { blend_tensor_from_greys(factor, pixels); }, image);
}

Result<void> change_tensor_hue(float factor, PlannedImage& image) {
  return change_each([factor](Pixels pixels) { turn_tensor_hues(factor, pixels); }, image);
}

Result<void> change_tensor_sharpness(double change, PlannedImage& image) {
  const auto sharpen = [change](std::span<const std::uint8_t> from, ImageSize size, const Box& part, Pixels to) {
    adjust_tensor_sharpness(change, size, from, part, to);
  };
  return image.replace(sharpen, PlannedImage::Scale::kIsFree);
}

Result<void> stretch_tensor_contrast(PlannedImage& image) {
  return change_by_all([](Pixels all) { return look_up_in(tensor_autocontrast_tables(all)); }, image);
}

}  // namespace sluice::pipeline
