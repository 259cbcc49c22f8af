#include "src/pipeline/ops/enhance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "src/pipeline/ops/hue.h"

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

// The tables that `table_from` makes of the histogram of each channel.
template <typename Function>
ChannelTables tables_of(Function table_from, std::span<const std::uint8_t> pixels) {
  std::array<Histogram, 3> histograms{};
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    for (std::size_t channel = 0; channel < 3; ++channel) ++histograms[channel][pixels[i + channel]];
  }
  ChannelTables tables{};
  std::transform(histograms.begin(), histograms.end(), tables.begin(), table_from);
  return tables;
}

std::uint8_t unchanged(int level) { return static_cast<std::uint8_t>(level); }

struct Levels {
  std::int64_t lowest;
  std::int64_t highest;
};

Levels used_levels(const Histogram& histogram) {
  const auto is_used = [](std::int64_t count) { return count > 0; };
  return {std::find_if(histogram.begin(), histogram.end(), is_used) - histogram.begin(),
          histogram.rend() - std::find_if(histogram.rbegin(), histogram.rend(), is_used) - 1};
}

Table autocontrast_table(const Histogram& histogram) {
  const auto [lowest, highest] = used_levels(histogram);
  if (highest <= lowest) return table_of(unchanged);
  const double scale = 255.0 / static_cast<double>(highest - lowest);
  const double offset = static_cast<double>(-lowest) * scale;
  return table_of([&](int level) { return clipped(static_cast<std::int64_t>(level * scale + offset)); });
}

Table tensor_autocontrast_table(const Histogram& histogram) {
  const auto [lowest, highest] = used_levels(histogram);
  if (highest <= lowest) return table_of(unchanged);
  const float scale = static_cast<float>(highest - lowest) * (1.0F / 255.0F);
  return table_of([scale, lowest = lowest](int level) {
    return clipped(static_cast<std::int64_t>(static_cast<float>(level - lowest) / scale));
  });
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

// Makes `part` of what has sharpened(byte, stride) of each byte that others are around, and the outermost pixels as
// they are. `stride`: from a row of `from` to the next.
template <typename Sharpened>
void make_sharp(Sharpened sharpened, ImageSize size, std::span<const std::uint8_t> from, const Box& part, Pixels to) {
  const std::size_t stride = bytes_of({1, size.width});
  const std::size_t part_stride = bytes_of({1, part.width});
  // Of each row, those that have pixels on both sides.
  const std::size_t first = part.left == 0 ? 3 : 0;
  const std::size_t last =
      part.left + part.width == size.width ? part_stride - std::min<std::size_t>(3, part_stride) : part_stride;
  for (int y = part.top; y < part.top + part.height; ++y) {
    const std::uint8_t* row = &from[static_cast<std::size_t>(y) * stride + bytes_of({1, part.left})];
    std::uint8_t* out = &to[static_cast<std::size_t>(y - part.top) * part_stride];
    std::memcpy(out, row, part_stride);
    if (y == 0 || y + 1 == size.height) continue;
    for (std::size_t i = first; i < last; ++i) out[i] = sharpened(row + i, stride);
  }
}

}  // namespace

void adjust_brightness(float factor, Pixels pixels) { blend_from_level(0, factor, pixels); }

int mean_grey(std::span<const std::uint8_t> pixels) {
  const double mean = static_cast<double>(sum_of_greys(pixels)) / static_cast<double>(pixels.size() / 3);
  return static_cast<int>(mean + 0.5);
}

void adjust_contrast(float factor, Pixels pixels) { blend_from_level(mean_grey(pixels), factor, pixels); }

void adjust_saturation(float factor, Pixels pixels) {
  if (factor == 0.0F) return make_grey(pixels);
  blend_from_greys(factor, pixels);
}

void adjust_hue(float factor, Pixels pixels) {
  turn_hues(static_cast<std::int32_t>(static_cast<double>(factor) * 255.0), pixels);
}

void adjust_sharpness(float factor, ImageSize size, std::span<const std::uint8_t> from, const Box& part, Pixels to) {
  // ImageFilter.SMOOTH: 5 in the middle, 1 around it, over 13. Float32, row by row from below, as Pillow sums.
  constexpr float kMiddle = 5.0F / 13.0F;
  constexpr float kAround = 1.0F / 13.0F;
  const auto sum = [](const std::uint8_t* at, float middle) {
    return static_cast<float>(at[-3]) * kAround + static_cast<float>(at[0]) * middle +
           static_cast<float>(at[3]) * kAround;
  };
  const auto sharpened = [&](const std::uint8_t* at, std::size_t stride) {
    const float smooth = 0.5F + sum(at + stride, kAround) + sum(at, kMiddle) + sum(at - stride, kAround);
    return blend(static_cast<std::uint8_t>(std::clamp(smooth, 0.0F, 255.0F)), *at, factor);
  };
  make_sharp(sharpened, size, from, part, to);
}

void adjust_tensor_sharpness(double change, ImageSize size, std::span<const std::uint8_t> from, const Box& part,
                             Pixels to) {
  // torch's convolution adds up in an order of its own. But a thirteenth of a whole number is nowhere near a half.
  const auto share = static_cast<float>(-change);
  const auto sum = [](const std::uint8_t* at) { return at[-3] + at[0] + at[3]; };
  const auto sharpened = [&](const std::uint8_t* at, std::size_t stride) {
    const int smooth = (2 * (sum(at - stride) + sum(at) + 4 * at[0] + sum(at + stride)) + 13) / 26;
    const float mixed = std::fma(share, static_cast<float>(smooth - *at), static_cast<float>(*at));
    return static_cast<std::uint8_t>(std::clamp(mixed, 0.0F, 255.0F));
  };
  make_sharp(sharpened, size, from, part, to);
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

ChannelTables autocontrast_tables(std::span<const std::uint8_t> pixels) {
  return tables_of(autocontrast_table, pixels);
}

ChannelTables tensor_autocontrast_tables(std::span<const std::uint8_t> pixels) {
  return tables_of(tensor_autocontrast_table, pixels);
}

ChannelTables equalize_tables(std::span<const std::uint8_t> pixels) { return tables_of(equalize_table, pixels); }

void look_up(const ChannelTables& tables, Pixels pixels) {
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    for (std::size_t channel = 0; channel < 3; ++channel) pixels[i + channel] = tables[channel][pixels[i + channel]];
  }
}

}  // namespace sluice::pipeline
