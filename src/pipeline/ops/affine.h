// Pillow's Image.transform(AFFINE) and the maps that torchvision and Pillow give it.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "src/base/result.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/planned_image.h"

namespace sluice::pipeline {

// Where an output pixel at (x, y) comes from: (a x + b y + c, d x + e y + f).
using AffineMap = std::array<double, 6>;

// torchvision's F.affine with a shear in radians or a translation in pixels, else nothing. Shears turn about the corner
// (0, 0).
AffineMap shear_map(double shear_x, double shear_y);
AffineMap translation_map(double right, double down);

// What lies outside of the image shows `fill`.
struct AffineStyle {
  Interpolation interpolation = Interpolation::kNearest;  // or kBilinear
  std::array<std::uint8_t, 3> fill{};
};

// InvalidArgument where the map leaves the range of Pillow's fixed point; and the errors of PlannedImage::replace.
Result<void> transform(const AffineMap& map, const AffineStyle& style, PlannedImage& image);

// Image.rotate, counterclockwise about the middle, keeping the size.
Result<void> rotate(double degrees, const AffineStyle& style, PlannedImage& image);

}  // namespace sluice::pipeline
