// The changes of enhance.h and tensor_color.h to an image whose pixels are computed late. Those of each pixel wait
// (late_change.h). Those that look at all pixels first do that at once, exactly, and only what they then do to each
// pixel waits; relaxed, they wait as a whole, and look at what is left of the image.
//
// Errors: those of PlannedImage::pixels. Thread safety: pure functions.
#pragma once

#include "src/base/result.h"
#include "src/pipeline/planned_image.h"

namespace sluice::pipeline {

Result<void> change_brightness(float factor, PlannedImage& image);
Result<void> change_contrast(float factor, PlannedImage& image);
Result<void> change_saturation(float factor, PlannedImage& image);
Result<void> change_hue(float factor, PlannedImage& image);
Result<void> change_sharpness(float factor, PlannedImage& image);
Result<void> stretch_contrast(PlannedImage& image);  // ImageOps.autocontrast
Result<void> equalize_levels(PlannedImage& image);

// As torchvision's second generation computes on tensors of bytes (tensor_color.h).
Result<void> change_tensor_brightness(float factor, PlannedImage& image);
Result<void> change_tensor_contrast(float factor, PlannedImage& image);
Result<void> change_tensor_saturation(float factor, PlannedImage& image);
Result<void> change_tensor_hue(float factor, PlannedImage& image);
Result<void> change_tensor_sharpness(double change, PlannedImage& image);  // the factor less 1
Result<void> stretch_tensor_contrast(PlannedImage& image);                 // autocontrast

}  // namespace sluice::pipeline
