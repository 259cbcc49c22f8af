// A file of a data set: refused with a reason, or decoded, all of it or a part. With all kernels as with libjpeg alone.
#include <cstring>
#include <optional>
#include <span>

#include "src/pipeline/fuzz/decoded_box.h"
#include "src/pipeline/fuzz/fuzz.h"
#include "src/pipeline/jpeg_decoder.h"

namespace sluice::pipeline::fuzz {
namespace {

constexpr std::int64_t kMaxPixels = 1 << 18;

// Nothing if the file is refused. Larger images are not decoded.
std::optional<Box> box_of(const Result<ImageSize>& opened, bool middle_only) {
  const auto size = size_to_decode(opened, kMaxPixels);
  if (!size) return std::nullopt;
  return middle_only ? middle_of(*size) : whole_of(*size);
}

void compare(std::span<const std::uint8_t> file, bool middle_only, const JpegKernels& kernels) {
  JpegDecoder libjpeg(nullptr);
  JpegDecoder decoder(&kernels);
  const auto box = box_of(libjpeg.open(file), middle_only);
  const auto same_box = box_of(decoder.open(file), middle_only);
  FUZZ_CHECK(box.has_value() == same_box.has_value());
  if (!box) return;
  const auto wanted = libjpeg.decode(*box);
  const auto found = decoder.decode(*box);
  FUZZ_CHECK(wanted.ok() == found.ok());
  // libjpeg may read more than the box needs, and so see more damage.
  FUZZ_CHECK(libjpeg.warned() == decoder.warned() || (middle_only && libjpeg.warned()));
  if (!found.ok()) {
    FUZZ_CHECK(wanted.error().message() == found.error().message());
    return;
  }
  FUZZ_CHECK(found->size == wanted->size);
#if defined(__x86_64__)
  // Sums that no image has, only damage, saturate elsewhere in libjpeg-turbo's code for other processors.
  for (int y = 0; y < box->height; ++y) {
    FUZZ_CHECK(std::memcmp(found->row(y), wanted->row(y), static_cast<std::size_t>(box->width) * 3) == 0);
  }
#endif
}

}  // namespace

void jpeg(std::string_view input) {
  const std::span file(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  for (const JpegKernels* kernels : available_jpeg_kernels()) {
    compare(file, false, *kernels);
    compare(file, true, *kernels);
  }
}

}  // namespace sluice::pipeline::fuzz
