#include "src/pipeline/tensor_conversion.h"

#include <cstring>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

std::vector<float> converted(const TensorConversion& conversion, const std::vector<std::uint8_t>& pixels) {
  std::vector<float> tensor(pixels.size());
  conversion.apply(pixels, std::as_writable_bytes(std::span(tensor)));
  return tensor;
}

TEST_CASE("pixels become planes, and bytes torch's float32 quotients") {
  const TensorConversion conversion(true, {});
  CHECK(conversion.dtype() == "float32");
  // torch: tensor.to(float32).div(255)
  CHECK(converted(conversion, {0, 1, 127, 128, 254, 255}) ==
        std::vector<float>{0, 0x1.010102p-1F, 0x1.010102p-8F, 0x1.fdfdfep-1F, 0x1.fdfdfep-2F, 1});
}

TEST_CASE("normalize is torch's float32 arithmetic for each channel") {
  const TensorConversion conversion(true, Normalize{{0.485, 0, 0.485}, {0.229, 1, 0.229}});
  // torch: .sub_(0.485).div_(0.229) of the quotients above
  CHECK(converted(conversion, {0, 255, 1, 127, 255, 128}) ==
        std::vector<float>{-0x1.0f177ap+1F, 0x1.d2734cp-5F, 1, 1, -0x1.0ce656p+1F, 0x1.2f5e64p-4F});
  CHECK(converted(conversion, {254, 255, 255}) == std::vector<float>{0x1.1dab14p+1F, 1, 0x1.1fdc3ap+1F});
}

TEST_CASE("without to_tensor bytes stay bytes") {
  const TensorConversion conversion(false, {});
  CHECK(conversion.dtype() == "uint8");
  CHECK(conversion.element_bytes() == 1);
  const std::vector<std::uint8_t> pixels{1, 2, 3, 4, 5, 6};
  std::vector<std::uint8_t> tensor(6);
  conversion.apply(pixels, std::as_writable_bytes(std::span(tensor)));
  CHECK(tensor == std::vector<std::uint8_t>{1, 4, 2, 5, 3, 6});
}

}  // namespace
}  // namespace sluice::pipeline
