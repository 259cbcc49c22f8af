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
void move_nearest(const AffineMap& map, const Source& from, std::uint8_t* to) {
  const auto places = [](double place, double step, int count) {
    std::vector<int> sources(static_cast<std::size_t>(count));
    for (int& source : sources) {
      source = place < 0 ? -1 : static_cast<int>(place);
      place += step;
    }
    return sources;
  };
  const std::vector<int> columns = places(map[2] + map[0] * 0.5, map[0], from.size.width);
  for (const int y : places(map[5] + map[4] * 0.5, map[4], from.size.height)) {
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
void turn_nearest(const AffineMap& map, const Source& from, std::uint8_t* to) {
  const auto fixed = [](double value) { return static_cast<std::int64_t>(std::floor(value * kFixedPointOne + 0.5)); };
  const std::int64_t step_x = fixed(map[0]);
  const std::int64_t step_y = fixed(map[3]);
  std::int64_t row_x = fixed(map[2] + map[0] * 0.5 + map[1] * 0.5);
  std::int64_t row_y = fixed(map[5] + map[3] * 0.5 + map[4] * 0.5);
  for (int y = 0; y < from.size.height; ++y, row_x += fixed(map[1]), row_y += fixed(map[4])) {
    std::int64_t at_x = row_x;
    std::int64_t at_y = row_y;
    for (int x = 0; x < from.size.width; ++x, at_x += step_x, at_y += step_y, to += 3) {
      if (is_inside(at_x >> 16, from.size.width) && is_inside(at_y >> 16, from.size.height))
        std::memcpy(to, from.at(static_cast<int>(at_x >> 16), static_cast<int>(at_y >> 16)), 3);
    }
  }
}

double between(double from, double to, double share) { return from + (to - from) * share; }

void bilinear(const AffineMap& map, const Source& from, std::uint8_t* to) {
  const int height = from.size.height;
  const int width = from.size.width;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x, to += 3) {
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
void turn_left(const Source& from, std::uint8_t* to) {
  for (int y = 0; y < from.size.height; ++y)
    for (int x = 0; x < from.size.width; ++x, to += 3) std::memcpy(to, from.at(from.size.width - 1 - y, x), 3);
}

void turn_right(const Source& from, std::uint8_t* to) {
  for (int y = 0; y < from.size.height; ++y)
    for (int x = 0; x < from.size.width; ++x, to += 3) std::memcpy(to, from.at(y, from.size.height - 1 - x), 3);
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
  const ImageSize size = image.size();
  for (const double x : {0, size.width}) {
    for (const double y : {0, size.height}) {
      if (fits_fixed_point(map, x, y)) continue;
      return invalid_argument("an affine map is too large for an image of " + std::to_string(size.height) + "x" +
                              std::to_string(size.width));
    }
  }
  return image.replace([&](std::span<const std::uint8_t> from, std::span<std::uint8_t> to) {
    for (std::size_t i = 0; i < to.size(); i += 3) std::memcpy(&to[i], style.fill.data(), 3);
    const Source source{from, size};
    if (style.interpolation == Interpolation::kBilinear) return bilinear(map, source, to.data());
    if (map[1] == 0 && map[3] == 0) return move_nearest(map, source, to.data());
    turn_nearest(map, source, to.data());
  });
}

Result<void> rotate(double degrees, const AffineStyle& style, PlannedImage& image) {
  double angle = std::fmod(degrees, 360.0);  // as Python's %, never negative
  if (angle < 0) angle += 360.0;
  if (angle == 0) return {};
  const ImageSize size = image.size();
  if (angle == 180) {
    image.flip_horizontally();
    image.flip_vertically();
    return {};
  }
  if ((angle == 90 || angle == 270) && size.height == size.width) {
    return image.replace([&](std::span<const std::uint8_t> from, std::span<std::uint8_t> to) {
      (angle == 90 ? turn_left : turn_right)({from, size}, to.data());
    });
  }
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
  return transform(map, style, image);
}

}  // namespace sluice::pipeline
