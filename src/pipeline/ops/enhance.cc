#include "src/pipeline/ops/enhance.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace sluice::pipeline {
namespace {

using Table = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;

std::uint8_t clipped(std::int64_t level) { return static_cast<std::uint8_t>(std::clamp<std::int64_t>(level, 0, 255)); }

template <typename Function>
Table table_of(Function function) {
  Table table{};
  for (int level = 0; level < 256; ++level) table[static_cast<std::size_t>(level)] = function(level);
  return table;
}

void look_up(const Table& table, Pixels pixels) {
  for (std::uint8_t& byte : pixels) byte = table[byte];
}

// Changes each channel by the table that `table_from` makes of its histogram.
template <typename Function>
void look_up_by_channel(Function table_from, Pixels pixels) {
  std::array<Histogram, 3> histograms{};
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    for (std::size_t channel = 0; channel < 3; ++channel) ++histograms[channel][pixels[i + channel]];
  }
  std::array<Table, 3> tables{};
  std::transform(histograms.begin(), histograms.end(), tables.begin(), table_from);
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    for (std::size_t channel = 0; channel < 3; ++channel) pixels[i + channel] = tables[channel][pixels[i + channel]];
  }
}

std::uint8_t unchanged(int level) { return static_cast<std::uint8_t>(level); }

Table autocontrast_table(const Histogram& histogram) {
  const auto is_used = [](std::int64_t count) { return count > 0; };
  const auto lowest = std::find_if(histogram.begin(), histogram.end(), is_used) - histogram.begin();
  const auto highest = histogram.rend() - std::find_if(histogram.rbegin(), histogram.rend(), is_used) - 1;
  if (highest <= lowest) return table_of(unchanged);
  const double scale = 255.0 / static_cast<double>(highest - lowest);
  const double offset = static_cast<double>(-lowest) * scale;
  return table_of([&](int level) { return clipped(static_cast<std::int64_t>(level * scale + offset)); });
}

Table equalize_table(const Histogram& histogram) {
  const auto last = std::find_if(histogram.rbegin(), histogram.rend(), [](std::int64_t count) { return count > 0; });
  if (last == histogram.rend()) return table_of(unchanged);
  const std::int64_t step = (std::accumulate(histogram.begin(), histogram.end(), std::int64_t{0}) - *last) / 255;
  if (step == 0) return table_of(unchanged);
  std::int64_t below = step / 2;
  return table_of([&](int level) {
    const std::uint8_t equalized = clipped(below / step);
    below += histogram[static_cast<std::size_t>(level)];
    return equalized;
  });
}

}  // namespace

void adjust_brightness(float factor, Pixels pixels) { blend_from_level(0, factor, pixels); }

void adjust_contrast(float factor, Pixels pixels) {
  const double mean = static_cast<double>(sum_of_greys(pixels)) / static_cast<double>(pixels.size() / 3);
  blend_from_level(static_cast<int>(mean + 0.5), factor, pixels);
}

void adjust_saturation(float factor, Pixels pixels) { blend_from_greys(factor, pixels); }

void adjust_sharpness(float factor, ImageSize size, std::span<const std::uint8_t> from, Pixels to) {
  // ImageFilter.SMOOTH: 5 in the middle, 1 around it, over 13. Float32, row by row from below, as Pillow sums.
  constexpr float kMiddle = 5.0F / 13.0F;
  constexpr float kAround = 1.0F / 13.0F;
  std::memcpy(to.data(), from.data(), from.size());
  const std::size_t stride = static_cast<std::size_t>(size.width) * 3;
  if (size.height < 3 || size.width < 3) return;
  const auto sum = [](const std::uint8_t* at, float middle) {
    return static_cast<float>(at[-3]) * kAround + static_cast<float>(at[0]) * middle +
           static_cast<float>(at[3]) * kAround;
  };
  for (std::size_t y = 1; y + 1 < static_cast<std::size_t>(size.height); ++y) {
    const std::uint8_t* row = &from[y * stride];
    std::uint8_t* out = &to[y * stride];
    for (std::size_t i = 3; i + 3 < stride; ++i) {
      const float smooth =
          0.5F + sum(row + i + stride, kAround) + sum(row + i, kMiddle) + sum(row + i - stride, kAround);
      out[i] = blend(static_cast<std::uint8_t>(std::clamp(smooth, 0.0F, 255.0F)), row[i], factor);
    }
  }
}

void posterize(int bits, Pixels pixels) {
  const int mask = ~((1 << (8 - bits)) - 1);
  look_up(table_of([&](int level) { return clipped(level & mask); }), pixels);
}

void solarize(double threshold, Pixels pixels) {
  look_up(table_of([&](int level) { return clipped(level < threshold ? level : 255 - level); }), pixels);
}

void invert(Pixels pixels) {
  for (std::uint8_t& byte : pixels) byte = static_cast<std::uint8_t>(255 - byte);
}

void autocontrast(Pixels pixels) { look_up_by_channel(autocontrast_table, pixels); }

void equalize(Pixels pixels) { look_up_by_channel(equalize_table, pixels); }

}  // namespace sluice::pipeline
