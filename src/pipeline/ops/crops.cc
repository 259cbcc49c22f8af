// torchvision's CenterCrop and RandomCrop, v1 and v2; RandomCrop's padding is an operation of its own before it.
#include <algorithm>

#include "src/pipeline/ops/all_ops.h"
#include "src/pipeline/ops/fields.h"

namespace sluice::pipeline {
namespace {

class Crop : public Op {
 public:
  explicit Crop(ImageSize size) : size_(size) {}
  ValueKind takes() const override { return ValueKind::kImage; }
  ValueType result_of(const ValueType& input) const override { return {input.kind, size_, input.channels}; }

 protected:
  ImageSize size_;
};

class CenterCrop final : public Crop {
 public:
  using Crop::Crop;

  bool draws() const override { return false; }
  Result<void> change(PlannedImage& image, TorchRandom& /*random*/) const override {
    const int lacks_height = std::max(0, size_.height - image.size().height);
    const int lacks_width = std::max(0, size_.width - image.size().width);
    if (lacks_height > 0 || lacks_width > 0) {
      const Padding border{lacks_width / 2,       lacks_height / 2, (lacks_width + 1) / 2, (lacks_height + 1) / 2, {},
                           PaddingMode::kConstant};
      SLUICE_TRY_VOID(image.pad(border));
    }
    image.crop(center_crop_box(image.size(), size_));
    return {};
  }
};

// Where one side fits exactly, v1 draws for both sides, v2 for the other one only.
enum class DrawWhenOneSideFits { kBoth, kOther };

class RandomCrop final : public Crop {
 public:
  RandomCrop(ImageSize size, bool pads, const Padding& border, DrawWhenOneSideFits draws)
      : Crop(size), pads_(pads), border_(border), draws_(draws) {}

  Result<void> change(PlannedImage& image, TorchRandom& random) const override {
    if (pads_) SLUICE_TRY_VOID(pad_as_needed(image));
    const ImageSize now = image.size();
    const int free_height = now.height - size_.height;
    const int free_width = now.width - size_.width;
    if (free_height < 0 || free_width < 0) {
      return invalid_argument("random_crop is larger than an image of " + std::to_string(now.height) + "x" +
                              std::to_string(now.width));
    }
    const bool draws_always = draws_ == DrawWhenOneSideFits::kBoth && (free_height > 0 || free_width > 0);
    Box box{0, 0, size_.height, size_.width};
    if (draws_always || free_height > 0) box.top = static_cast<int>(random.randint(0, free_height + 1));
    if (draws_always || free_width > 0) box.left = static_cast<int>(random.randint(0, free_width + 1));
    image.crop(box);
    return {};
  }

 private:
  // torchvision adds what lacks on both sides, the width first; the second generation adds both at once. Mirrored
  // borders do not depend on the order of the axes.
  Result<void> pad_as_needed(PlannedImage& image) const {
    Padding border = border_;
    border.left = border.right = std::max(0, size_.width - image.size().width);
    border.top = border.bottom = std::max(0, size_.height - image.size().height);
    if (border.left == 0 && border.top == 0) return {};
    return image.pad(border);
  }

  bool pads_;
  Padding border_;
  DrawWhenOneSideFits draws_;
};

}  // namespace

OpPointer parse_center_crop(JsonReader& reader) { return std::make_unique<CenterCrop>(read_size(reader)); }

OpPointer parse_random_crop(JsonReader& reader) {
  const ImageSize size = read_size(reader);
  const auto* needed = reader.find("pad_if_needed");
  if (needed != nullptr && !needed->is_boolean()) reader.fail("pad_if_needed", "must be true or false");
  const bool pads = needed != nullptr && needed->is_boolean() && needed->get<bool>();
  const int generation = read_generation(reader);
  Padding border;
  read_border(reader, border);
  const auto draws = generation == 1 ? DrawWhenOneSideFits::kBoth : DrawWhenOneSideFits::kOther;
  return std::make_unique<RandomCrop>(size, pads, border, draws);
}

}  // namespace sluice::pipeline
