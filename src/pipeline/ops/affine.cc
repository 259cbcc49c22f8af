#include "src/pipeline/ops/affine.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <optional>
#include <vector>

namespace sluice::pipeline {
namespace {

constexpr double kRadiansPerDegree = std::numbers::pi / 180.0;

// Python's round(value, 15).
double rounded_to_15_digits(double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.15f", value);
  return std::strtod(text.data(), nullptr);
}

struct Source {
  std::span<const std::uint8_t> pixels;
  ImageSize size;

  const std::uint8_t* at(int x, int y) const {
    return &pixels[(static_cast<std::size_t>(y) * static_cast<std::size_t>(size.width) + static_cast<std::size_t>(x)) *
                   3];
  }
};

bool is_inside(std::int64_t place, int size) { return place >= 0 && place < size; }

// Without a turn, Pillow adds up the places of the columns and rows in floating point.
void move_nearest(const AffineMap& map, const Source& from, const Box& part, std::uint8_t* to) {
  const auto places = [](double place, double step, int first, int count) {
    std::vector<int> sources;
    sources.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < first + count; ++i) {
      if (i >= first) sources.push_back(place < 0 ? -1 : static_cast<int>(place));
      place += step;
    }
    return sources;
  };
  const std::vector<int> columns = places(map[2] + map[0] * 0.5, map[0], part.left, part.width);
  for (const int y : places(map[5] + map[4] * 0.5, map[4], part.top, part.height)) {
    for (const int x : columns) {
      if (is_inside(x, from.size.width) && is_inside(y, from.size.height)) std::memcpy(to, from.at(x, y), 3);
      to += 3;
    }
  }
}

constexpr double kFixedPointOne = 65536.0;
constexpr double kFixedPointLimit = 32768.0;

bool fits_fixed_point(const AffineMap& map, double x, double y) {
  return std::abs(x * map[0] + y * map[1] + map[2]) < kFixedPointLimit &&
         std::abs(x * map[3] + y * map[4] + map[5]) < kFixedPointLimit;
}

// 16 bits behind the point.
void turn_nearest(const AffineMap& map, const Source& from, const Box& part, std::uint8_t* to) {
  const auto fixed = [](double value) { return static_cast<std::int64_t>(std::floor(value * kFixedPointOne + 0.5)); };
  const std::int64_t step_x = fixed(map[0]);
  const std::int64_t step_y = fixed(map[3]);
  std::int64_t row_x = fixed(map[2] + map[0] * 0.5 + map[1] * 0.5) + part.top * fixed(map[1]) + part.left * step_x;
  std::int64_t row_y = fixed(map[5] + map[3] * 0.5 + map[4] * 0.5) + part.top * fixed(map[4]) + part.left * step_y;
  for (int y = 0; y < part.height; ++y, row_x += fixed(map[1]), row_y += fixed(map[4])) {
    std::int64_t at_x = row_x;
    std::int64_t at_y = row_y;
    for (int x = 0; x < part.width; ++x, at_x += step_x, at_y += step_y, to += 3) {
      if (is_inside(at_x >> 16, from.size.width) && is_inside(at_y >> 16, from.size.height))
        std::memcpy(to, from.at(static_cast<int>(at_x >> 16), static_cast<int>(at_y >> 16)), 3);
    }
  }
}

double between(double from, double to, double share) { return from + (to - from) * share; }

void bilinear(const AffineMap& map, const Source& from, const Box& part, std::uint8_t* to) {
  const int height = from.size.height;
  const int width = from.size.width;
  for (int y = part.top; y < part.top + part.height; ++y) {
    for (int x = part.left; x < part.left + part.width; ++x, to += 3) {
      const double at_x = map[0] * (x + 0.5) + map[1] * (y + 0.5) + map[2];
      const double at_y = map[3] * (x + 0.5) + map[4] * (y + 0.5) + map[5];
      if (at_x < 0.0 || at_x >= width || at_y < 0.0 || at_y >= height) continue;
      const int left = static_cast<int>(std::floor(at_x - 0.5));
      const int top = static_cast<int>(std::floor(at_y - 0.5));
      const double share_x = (at_x - 0.5) - left;
      const double share_y = (at_y - 0.5) - top;
      const auto row = [&](int place) { return std::clamp(place, 0, height - 1); };
      const auto column = [&](int place) { return std::clamp(place, 0, width - 1); };
      const std::uint8_t* const corners[2][2] = {
          {from.at(column(left), row(top)), from.at(column(left + 1), row(top))},
          {from.at(column(left), row(top + 1)), from.at(column(left + 1), row(top + 1))}};
      for (int channel = 0; channel < 3; ++channel) {
        const double upper = between(corners[0][0][channel], corners[0][1][channel], share_x);
        const double lower = between(corners[1][0][channel], corners[1][1][channel], share_x);
        to[channel] = static_cast<std::uint8_t>(between(upper, lower, share_y));
      }
    }
  }
}

// Exact turns of a square.
template <typename At>
void turn_square(const Box& part, std::uint8_t* to, At at) {
  for (int y = part.top; y < part.top + part.height; ++y)
    for (int x = part.left; x < part.left + part.width; ++x, to += 3) std::memcpy(to, at(x, y), 3);
}

void map_pixels(const AffineMap& map, const AffineStyle& style, const Source& from, const Box& part,
                std::span<std::uint8_t> to) {
  for (std::size_t i = 0; i < to.size(); i += 3) std::memcpy(&to[i], style.fill.data(), 3);
  if (style.interpolation == Interpolation::kBilinear) return bilinear(map, from, part, to.data());
  if (map[1] == 0 && map[3] == 0) return move_nearest(map, from, part, to.data());
  turn_nearest(map, from, part, to.data());
}

AffineMap rotation_map(double angle, ImageSize size) {
  const double radians = -(angle * kRadiansPerDegree);
  const double cosine = rounded_to_15_digits(std::cos(radians));
  const double sine = rounded_to_15_digits(std::sin(radians));
  AffineMap map{cosine, sine, 0.0, rounded_to_15_digits(-std::sin(radians)), cosine, 0.0};
  const double middle_x = size.width / 2.0;
  const double middle_y = size.height / 2.0;
  map[2] = map[0] * -middle_x + map[1] * -middle_y + map[2];
  map[5] = map[3] * -middle_x + map[4] * -middle_y + map[5];
  map[2] += middle_x;
  map[5] += middle_y;
  return map;
}

void rotate_pixels(double angle, const AffineStyle& style, const Source& from, const Box& part,
                   std::span<std::uint8_t> to) {
  const int last = from.size.width - 1;
  const bool is_square = from.size.height == from.size.width;
  if (is_square && angle == 90) return turn_square(part, to.data(), [&](int x, int y) { return from.at(last - y, x); });
  if (is_square && angle == 270)
    return turn_square(part, to.data(), [&](int x, int y) { return from.at(y, last - x); });
  map_pixels(rotation_map(angle, from.size), style, from, part, to);
}

// A smaller image needs no more.
Result<void> check_fixed_point(const AffineMap& map, ImageSize size) {
  for (const double x : {0, size.width}) {
    for (const double y : {0, size.height}) {
      if (fits_fixed_point(map, x, y)) continue;
      return invalid_argument("an affine map is too large for an image of " + std::to_string(size.height) + "x" +
                              std::to_string(size.width));
    }
  }
  return {};
}

}  // namespace

AffineMap shear_map(double shear_x, double shear_y) {
  // torchvision's inverse matrix for an angle of 0 and a scale of 1, in its order of operations. It passes degrees.
  const double x = (shear_x * (180.0 / std::numbers::pi)) * kRadiansPerDegree;
  const double y = (shear_y * (180.0 / std::numbers::pi)) * kRadiansPerDegree;
  const double a = std::cos(0.0 - y) / std::cos(y);
  const double b = -std::cos(0.0 - y) * std::tan(x) / std::cos(y) - 0.0;
  const double c = std::sin(0.0 - y) / std::cos(y);
  const double d = -std::sin(0.0 - y) * std::tan(x) / std::cos(y) + 1.0;
  return {d, -b, 0.0, -c, a, 0.0};
}

AffineMap translation_map(double right, double down) { return {1.0, 0.0, -right, 0.0, 1.0, -down}; }

Result<void> transform(const AffineMap& map, const AffineStyle& style, PlannedImage& image) {
  SLUICE_TRY_VOID(check_fixed_point(map, image.size()));
  const bool is_translation = map[2] != 0 || map[5] != 0;  // by pixels, which a smaller image has less of
  return image.replace(
      [map, style](std::span<const std::uint8_t> from, ImageSize size, const Box& part, std::span<std::uint8_t> to) {
        map_pixels(map, style, {from, size}, part, to);
      },
      is_translation ? PlannedImage::Scale::kMatters : PlannedImage::Scale::kIsFree);
}

Result<void> rotate(double degrees, const AffineStyle& style, PlannedImage& image) {
  double angle = std::fmod(degrees, 360.0);  // as Python's %, never negative
  if (angle < 0) angle += 360.0;
  if (angle == 0) return {};
  if (angle == 180) {
    SLUICE_TRY_VOID(image.flip_horizontally());
    return image.flip_vertically();
  }
  SLUICE_TRY_VOID(check_fixed_point(rotation_map(angle, image.size()), image.size()));
  return image.replace(
      [angle, style](std::span<const std::uint8_t> from, ImageSize size, const Box& part, std::span<std::uint8_t> to) {
        rotate_pixels(angle, style, {from, size}, part, to);
      },
      PlannedImage::Scale::kIsFree);
}

}  // namespace sluice::pipeline
