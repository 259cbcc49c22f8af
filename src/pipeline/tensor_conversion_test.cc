#include "src/pipeline/tensor_conversion.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/ops/all_ops.h"

namespace sluice::pipeline {
namespace {

using nlohmann::json;

std::unique_ptr<const Op> parsed(OpPointer (*parse)(JsonReader&), const json& fields) {
  JsonReader reader(fields, "");
  auto op = parse(reader);
  REQUIRE_FALSE(reader.error());
  return op;
}

std::vector<float> converted(const std::vector<std::unique_ptr<const Op>>& ops,
                             const std::vector<std::uint8_t>& pixels) {
  std::vector<const Op*> pointers;
  for (const auto& op : ops) pointers.push_back(op.get());
  const TensorConversion conversion(pointers, {1, static_cast<int>(pixels.size() / 3)});
  CHECK(conversion.dtype() == "float32");
  std::vector<float> tensor(pixels.size());
  conversion.apply(pixels, {}, std::as_writable_bytes(std::span(tensor)));
  return tensor;
}

std::vector<std::unique_ptr<const Op>> to_tensor_and(const json& normalize) {
  std::vector<std::unique_ptr<const Op>> ops;
  ops.push_back(parsed(parse_to_tensor, json::object()));
  if (!normalize.empty()) ops.push_back(parsed(parse_normalize, normalize));
  return ops;
}

TEST_CASE("pixels become planes, and bytes torch's float32 quotients") {
  // torch: tensor.to(float32).div(255)
  CHECK(converted(to_tensor_and({}), {0, 1, 127, 128, 254, 255}) ==
        std::vector<float>{0, 0x1.010102p-1F, 0x1.010102p-8F, 0x1.fdfdfep-1F, 0x1.fdfdfep-2F, 1});
}

TEST_CASE("normalize is torch's float32 arithmetic for each channel") {
  const auto conversion = to_tensor_and({{"mean", {0.485, 0, 0.485}}, {"std", {0.229, 1, 0.229}}});
  // torch: .sub_(0.485).div_(0.229) of the quotients above
  CHECK(converted(conversion, {0, 255, 1, 127, 255, 128}) ==
        std::vector<float>{-0x1.0f177ap+1F, 0x1.d2734cp-5F, 1, 1, -0x1.0ce656p+1F, 0x1.2f5e64p-4F});
  CHECK(converted(conversion, {254, 255, 255}) == std::vector<float>{0x1.1dab14p+1F, 1, 0x1.1fdc3ap+1F});
}

TEST_CASE("the second generation multiplies by the reciprocal") {
  std::vector<std::unique_ptr<const Op>> ops;
  ops.push_back(parsed(parse_to_float, json::object()));
  // torch: tensor.to(float32).mul_(1.0 / 255)
  CHECK(converted(ops, {0, 1, 255}) == std::vector<float>{0, 1.0F * (1.0F / 255.0F), 255.0F * (1.0F / 255.0F)});
}

TEST_CASE("an erased box is drawn with the image and written behind the table") {
  const auto to_tensor = parsed(parse_to_tensor, json::object());
  const json fields = {{"p", 1}, {"scale", {0.2, 0.2}}, {"ratio", {1, 1}}, {"value", {7, 8, 9}}};
  const auto erasing = parsed(parse_random_erasing, fields);
  const std::vector<const Op*> ops{to_tensor.get(), erasing.get()};
  const TensorConversion conversion(ops, {10, 10});
  std::vector<std::uint8_t> drawn(conversion.drawn_bytes());
  TorchRandom random(1);
  conversion.draw(random, drawn);
  std::vector<float> tensor(300, -1.0F);
  const std::vector<std::uint8_t> pixels(300, 255);
  conversion.apply(pixels, drawn, std::as_writable_bytes(std::span(tensor)));
  CHECK(std::count(tensor.begin(), tensor.end(), 1.0F) == 3 * (100 - 16));  // sqrt(20) rounds to 4
  for (const float value : {7.0F, 8.0F, 9.0F}) CHECK(std::count(tensor.begin(), tensor.end(), value) == 16);
  drawn.assign(drawn.size(), 255);  // a box outside of the image
  conversion.apply(pixels, drawn, std::as_writable_bytes(std::span(tensor)));
  CHECK(std::count(tensor.begin(), tensor.end(), 1.0F) == 300);
}

TEST_CASE("without to_tensor bytes stay bytes") {
  const TensorConversion conversion({}, {1, 2});
  CHECK(conversion.dtype() == "uint8");
  CHECK(conversion.element_bytes() == 1);
  const std::vector<std::uint8_t> pixels{1, 2, 3, 4, 5, 6};
  std::vector<std::uint8_t> tensor(6);
  conversion.apply(pixels, {}, std::as_writable_bytes(std::span(tensor)));
  CHECK(tensor == std::vector<std::uint8_t>{1, 4, 2, 5, 3, 6});
}

}  // namespace
}  // namespace sluice::pipeline
