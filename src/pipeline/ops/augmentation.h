// What torchvision's RandAugment, TrivialAugmentWide and AutoAugment do to an image: one of fifteen changes, of a
// magnitude.
//
// Thread safety: immutable.
#pragma once

#include <string>
#include <vector>

#include "src/base/json_reader.h"
#include "src/base/result.h"
#include "src/pipeline/ops/affine.h"
#include "src/pipeline/planned_image.h"

namespace sluice::pipeline {

struct AugmentationKind;  // a change and the magnitudes that it takes

// A change with the magnitudes of which one is drawn.
class Augmentation {
 public:
  // "name", "magnitudes" and "signed" of one change. What is wrong with them is the reader's error.
  static Augmentation read(JsonReader& reader);

  const std::vector<double>& magnitudes() const { return magnitudes_; }  // not empty
  bool is_signed() const { return is_signed_; }                          // whether a draw turns the magnitude's sign

  // `magnitude` is one of magnitudes(), or its negative if is_signed().
  Result<void> apply(double magnitude, const AffineStyle& style, PlannedImage& image) const;

 private:
  const AugmentationKind* kind_ = nullptr;
  std::vector<double> magnitudes_{0.0};
  bool is_signed_ = false;
};

// "interpolation", nearest if there is none, and "fill" of what moves and turns.
AffineStyle read_affine_style(JsonReader& reader);

}  // namespace sluice::pipeline
