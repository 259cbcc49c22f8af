#include "src/pipeline/ops/fields.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace sluice::pipeline {

using nlohmann::json;

std::vector<int> read_sides(JsonReader& reader) {
  std::vector<int> sides;
  const json* list = reader.find("size");
  if (list == nullptr || !list->is_array()) {
    reader.fail("size", list == nullptr ? "is missing" : "must be a list");
    return {1};
  }
  for (const json& side : *list) {
    const bool fits = side.is_number_integer() && side >= 1 && side <= kMaxSidePixels;
    sides.push_back(fits ? side.get<int>() : 0);
  }
  if (sides.empty() || sides.size() > 2 || std::count(sides.begin(), sides.end(), 0) > 0) {
    reader.fail("size",
                "must be one or two whole numbers from 1 to " + std::to_string(kMaxSidePixels) + ": [height, width]");
    return {1};
  }
  return sides;
}

ImageSize read_size(JsonReader& reader) {
  const std::vector<int> sides = read_sides(reader);
  return {sides.front(), sides.back()};
}

Interpolation read_interpolation(JsonReader& reader) {
  std::string name = "bilinear";
  if (reader.find("interpolation") != nullptr) reader.required("interpolation", name);
  constexpr std::pair<std::string_view, Interpolation> kNames[] = {{"bilinear", Interpolation::kBilinear},
                                                                   {"bicubic", Interpolation::kBicubic},
                                                                   {"nearest", Interpolation::kNearest},
                                                                   {"tensor_bilinear", Interpolation::kTensorBilinear},
                                                                   {"tensor_bicubic", Interpolation::kTensorBicubic}};
  for (const auto& [known, interpolation] : kNames) {
    if (name == known) return interpolation;
  }
  reader.fail("interpolation",
              "must be \"bilinear\", \"bicubic\", \"nearest\", \"tensor_bilinear\" or "
              "\"tensor_bicubic\", not \"" +
                  name + "\"");
  return Interpolation::kBilinear;
}

AspectRange read_aspect(JsonReader& reader) {
  AspectRange aspect;
  auto& [narrowest, widest] = aspect.ratio;
  reader.required("ratio", aspect.ratio);
  if (!(narrowest > 0 && narrowest <= widest && widest <= kMaxSidePixels))
    reader.fail("ratio", "must be two rising numbers above 0");
  for (std::size_t i = 0; i < 2; ++i)
    aspect.log_ratio[i] = static_cast<float>(std::log(static_cast<double>(static_cast<float>(aspect.ratio[i]))));
  if (reader.find("log_ratio") == nullptr) return aspect;
  std::array<double, 2> log_ratio{};
  reader.required("log_ratio", log_ratio);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!(std::abs(log_ratio[i] - static_cast<double>(aspect.log_ratio[i])) < 1e-5))
      reader.fail("log_ratio", "must be the logarithms of ratio");
    aspect.log_ratio[i] = static_cast<float>(log_ratio[i]);
  }
  return aspect;
}

bool fits(ImageSize size, int largest_side) { return size.height <= largest_side && size.width <= largest_side; }

std::array<std::uint8_t, 3> read_fill(JsonReader& reader) {
  std::array<std::uint8_t, 3> fill{};
  if (reader.find("fill") == nullptr) return fill;
  std::array<double, 3> levels{};
  reader.required("fill", levels);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    if (levels[channel] >= 0 && levels[channel] <= 255 && levels[channel] == std::floor(levels[channel]))
      fill[channel] = static_cast<std::uint8_t>(levels[channel]);
    else
      reader.fail("fill", "must be 3 whole numbers from 0 to 255");
  }
  return fill;
}

int read_generation(JsonReader& reader) {
  int generation = 1;
  if (reader.find("generation") != nullptr) reader.required("generation", generation, 1, 2);
  return generation;
}

bool read_is_tensor(JsonReader& reader) {
  std::string name = "image";
  if (reader.find("arithmetic") != nullptr) reader.required("arithmetic", name);
  if (name != "image" && name != "tensor") reader.fail("arithmetic", "must be \"image\" or \"tensor\"");
  return name == "tensor";
}

void read_border(JsonReader& reader, Padding& padding) {
  std::string mode = "constant";
  if (reader.find("mode") != nullptr) reader.required("mode", mode);
  constexpr std::array kModes{"constant", "edge", "reflect", "symmetric"};
  const auto* const found = std::find(kModes.begin(), kModes.end(), mode);
  if (found == kModes.end())
    reader.fail("mode", "must be \"constant\", \"edge\", \"reflect\" or \"symmetric\", not \"" + mode + "\"");
  else
    padding.mode = static_cast<PaddingMode>(found - kModes.begin());
  padding.fill = read_fill(reader);
}

}  // namespace sluice::pipeline
