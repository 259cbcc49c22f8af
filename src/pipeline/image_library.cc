#include "src/pipeline/image_library.h"

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>

#include "src/pipeline/gaussian_blur.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/image_decoder.h"
#include "src/pipeline/ops/enhance.h"
#include "src/pipeline/resampler.h"

namespace sluice::pipeline {
namespace {

constexpr int kPilBilinear = 2;
constexpr int kPilBicubic = 3;
constexpr int kFirstPillowWithHeightFirst = 13;
constexpr std::int32_t kDone = 0;
constexpr std::int32_t kRefused = 1;

struct Buffers {
  ImageDecoder decoder;
  Resampler resampler;
  GaussianBlur blur;
};

// Made for a thread's first image.
thread_local std::unique_ptr<Buffers> thread_buffers;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

std::int64_t pixels_of(ImageSize size) { return std::int64_t{size.height} * size.width; }

bool bounded(ImageSize size) { return size.height > 0 && size.width > 0 && pixels_of(size) <= kSluiceImagePixelsMax; }

bool inside(const Box& box, ImageSize size) {
  return box.top >= 0 && box.left >= 0 && box.height > 0 && box.width > 0 && box.height <= size.height - box.top &&
         box.width <= size.width - box.left;
}

bool is_sound(const SluiceImagePlan& asked, ImageSize image, const GeometryPlan& plan) {
  return bounded(image) && bounded(plan.resized) && inside(plan.source, image) && inside(plan.window, plan.resized) &&
         (asked.interpolation == kPilBilinear || asked.interpolation == kPilBicubic);
}

// Without a resize: the pixels as decoded, mirrored if asked.
void copy_pixels(const RgbView& view, bool flip, std::span<std::uint8_t> pixels) {
  const auto width = static_cast<std::size_t>(view.size.width);
  std::uint8_t* target = pixels.data();
  for (int y = 0; y < view.size.height; ++y, target += width * 3) {
    if (!flip) {
      std::memcpy(target, view.row(y), width * 3);
      continue;
    }
    for (std::size_t x = 0; x < width; ++x) std::memcpy(target + x * 3, view.row(y) + (width - 1 - x) * 3, 3);
  }
}

Buffers& buffers() {
  if (thread_buffers == nullptr) thread_buffers = std::make_unique<Buffers>();
  return *thread_buffers;
}

// Runs a plan on the boxes that `decode` gives of the image, or does not.
template <typename Decode>
std::int32_t show(const SluiceImagePlan& asked, std::span<std::uint8_t> pixels, const Decode& decode) {
  const GeometryPlan plan{
      .source = {asked.source_top, asked.source_left, asked.source_height, asked.source_width},
      .resized = {asked.resized_height, asked.resized_width},
      .window = {asked.window_top, asked.window_left, asked.window_height, asked.window_width},
      .flip = asked.flip != 0,
      .interpolation = asked.interpolation == kPilBicubic ? Interpolation::kBicubic : Interpolation::kBilinear,
  };
  if (!is_sound(asked, {asked.image_height, asked.image_width}, plan)) return kRefused;
  if (pixels.size() != static_cast<std::size_t>(pixels_of({plan.window.height, plan.window.width})) * 3) {
    return kRefused;
  }
  if (plan.resized == ImageSize{plan.source.height, plan.source.width}) {
    const Box shown{plan.source.top + plan.window.top, plan.source.left + plan.window.left, plan.window.height,
                    plan.window.width};
    const std::optional<RgbView> decoded = decode(shown);
    if (!decoded) return kRefused;
    copy_pixels(*decoded, plan.flip, pixels);
    return kDone;
  }
  const PassOrder order =
      asked.pillow >= kFirstPillowWithHeightFirst ? PassOrder::kHeightFirstIfShrunkMore : PassOrder::kWidthFirst;
  Resampler& resampler = buffers().resampler;
  const std::optional<RgbView> decoded = decode(resampler.prepare(plan, order));
  if (!decoded) return kRefused;
  resampler.resample(*decoded, pixels);
  return kDone;
}

std::int32_t show_file(std::span<const std::uint8_t> file, const SluiceImagePlan& asked,
                       std::span<std::uint8_t> pixels) {
  return show(asked, pixels, [&](const Box& box) -> std::optional<RgbView> {
    ImageDecoder& decoder = buffers().decoder;
    const auto stored = decoder.open(file);
    if (!stored || *stored != ImageSize{asked.image_height, asked.image_width}) return std::nullopt;
    const auto decoded = decoder.decode(box);
    if (!decoded || decoder.warned()) return std::nullopt;
    return *decoded;
  });
}

std::int32_t show_image(std::span<const std::uint8_t> image, const SluiceImagePlan& asked,
                        std::span<std::uint8_t> pixels) {
  static_assert(kSluiceReadableBytesBehindPixels >= kReadableBytesBehindPixels);
  return show(asked, pixels, [&](const Box& box) -> std::optional<RgbView> {
    const std::size_t stride = static_cast<std::size_t>(asked.image_width) * 3;
    const std::size_t rows_bytes = static_cast<std::size_t>(asked.image_height) * stride;
    if (image.size() != rows_bytes + kSluiceReadableBytesBehindPixels) return std::nullopt;
    const std::size_t offset = static_cast<std::size_t>(box.top) * stride + static_cast<std::size_t>(box.left) * 3;
    return RgbView{image.data() + offset, stride, {box.height, box.width}};
  });
}

// Calls `work`, which returns what a C function does, and frees the thread's buffers where they are too large to keep.
template <typename Work>
std::int32_t with_bounded_buffers(const SluiceImagePlan& plan, const Work& work) {
  std::int32_t result = kRefused;
  try {
    result = work();
  } catch (const std::bad_alloc&) {
    thread_buffers.reset();
  }
  if (pixels_of({plan.image_height, plan.image_width}) > kSluiceKeptPixelsMax ||
      pixels_of({plan.resized_height, plan.resized_width}) > kSluiceKeptPixelsMax) {
    thread_buffers.reset();
  }
  return result;
}

// Calls `work` with the thread's blur, the image's size, its pixels and the window.
template <typename Work>
std::int32_t with_blur(const std::uint8_t* pixels, const SluiceImageBlur& asked, const Work& work) {
  const ImageSize size{asked.height, asked.width};
  if (!bounded(size) || pixels_of(size) > kSluiceKeptPixelsMax || !bounded({asked.rows, asked.columns})) {
    return kRefused;
  }
  const auto rows = static_cast<std::size_t>(asked.rows);
  const auto columns = static_cast<std::size_t>(asked.columns);
  const BlurWindow window{rows, columns, {asked.weights, rows * columns}};
  if (!can_blur(size, window)) return kRefused;
  const std::size_t bytes = static_cast<std::size_t>(pixels_of(size)) * 3;
  try {
    work(buffers().blur, size, std::span(pixels, bytes), window);
  } catch (const std::bad_alloc&) {
    thread_buffers.reset();
    return kRefused;
  }
  return kDone;
}

// The two loops below are compiled twice, the second time for wide registers. A division gives the same bits either
// way.

[[gnu::always_inline]] inline void share_of_255(const std::uint8_t* __restrict pixels, std::size_t plane,
                                                float* __restrict tensor) {
  constexpr float kLargest = 255.0F;
  float* const green = tensor + plane;
  float* const blue = green + plane;
  for (std::size_t i = 0; i < plane; ++i) {
    tensor[i] = static_cast<float>(pixels[3 * i]) / kLargest;
    green[i] = static_cast<float>(pixels[3 * i + 1]) / kLargest;
    blue[i] = static_cast<float>(pixels[3 * i + 2]) / kLargest;
  }
}

[[gnu::always_inline]] inline void normalize(const float* __restrict tensor, std::size_t plane, const float* mean,
                                             const float* deviation, float* __restrict normalized) {
  for (std::size_t channel = 0; channel < 3; ++channel, tensor += plane, normalized += plane) {
    const float subtracted = mean[channel];
    const float divisor = deviation[channel];
    for (std::size_t i = 0; i < plane; ++i) normalized[i] = (tensor[i] - subtracted) / divisor;
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void share_of_255_avx2(const std::uint8_t* pixels, std::size_t plane, float* tensor) {
  share_of_255(pixels, plane, tensor);
}

__attribute__((target("avx2"))) void normalize_avx2(const float* tensor, std::size_t plane, const float* mean,
                                                    const float* deviation, float* normalized) {
  normalize(tensor, plane, mean, deviation, normalized);
}
#endif

}  // namespace
}  // namespace sluice::pipeline

extern "C" {

int32_t sluice_image_library_version(void) { return kSluiceImageLibraryVersion; }

int32_t sluice_image_pixels(const uint8_t* file, size_t file_bytes, const SluiceImagePlan* plan, uint8_t* pixels,
                            size_t pixels_bytes) {
  using namespace sluice::pipeline;
  if (file == nullptr || plan == nullptr || pixels == nullptr) return kRefused;
  return with_bounded_buffers(*plan, [&] { return show_file({file, file_bytes}, *plan, {pixels, pixels_bytes}); });
}

int32_t sluice_image_part(const uint8_t* image, size_t image_bytes, const SluiceImagePlan* plan, uint8_t* pixels,
                          size_t pixels_bytes) {
  using namespace sluice::pipeline;
  if (image == nullptr || plan == nullptr || pixels == nullptr) return kRefused;
  return with_bounded_buffers(*plan, [&] { return show_image({image, image_bytes}, *plan, {pixels, pixels_bytes}); });
}

void sluice_image_tensor(const uint8_t* pixels, size_t plane, float* tensor) {
#if defined(__x86_64__)
  if (sluice::pipeline::are_wide(sluice::pipeline::Registers::kWidest))
    return sluice::pipeline::share_of_255_avx2(pixels, plane, tensor);
#endif
  sluice::pipeline::share_of_255(pixels, plane, tensor);
}

void sluice_image_normalize(const float* tensor, size_t plane, const float* mean, const float* deviation,
                            float* normalized) {
#if defined(__x86_64__)
  if (sluice::pipeline::are_wide(sluice::pipeline::Registers::kWidest))
    return sluice::pipeline::normalize_avx2(tensor, plane, mean, deviation, normalized);
#endif
  sluice::pipeline::normalize(tensor, plane, mean, deviation, normalized);
}

int32_t sluice_image_blur(const uint8_t* pixels, const SluiceImageBlur* blur, uint8_t* blurred) {
  using namespace sluice::pipeline;
  if (pixels == nullptr || blur == nullptr || blur->weights == nullptr || blurred == nullptr) return kRefused;
  return with_blur(pixels, *blur, [&](GaussianBlur& work, ImageSize size, auto from, const BlurWindow& window) {
    work.blur(size, from, window, {blurred, from.size()});
  });
}

int32_t sluice_image_blur_sums(const uint8_t* pixels, const SluiceImageBlur* blur, float* sums) {
  using namespace sluice::pipeline;
  if (pixels == nullptr || blur == nullptr || blur->weights == nullptr || sums == nullptr) return kRefused;
  return with_blur(pixels, *blur, [&](GaussianBlur& work, ImageSize size, auto from, const BlurWindow& window) {
    work.sums(size, from, window, {sums, from.size()});
  });
}

int32_t sluice_image_adjust(int32_t change, float factor, const uint8_t* pixels, size_t plane, uint8_t* adjusted) {
  using namespace sluice::pipeline;
  constexpr std::array kChanges{adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue};
  constexpr std::array kLargestFactors{1e6F, 1e6F, 1e6F, 0.5F};
  const auto number = static_cast<std::size_t>(change);
  if (change < 0 || number >= kChanges.size() || !(std::abs(factor) <= kLargestFactors[number])) return kRefused;
  if (pixels == nullptr || adjusted == nullptr || plane == 0) return kRefused;
  std::memcpy(adjusted, pixels, plane * 3);
  kChanges[number](factor, {adjusted, plane * 3});
  return kDone;
}

}  // extern "C"
