#include "src/pipeline/audio/audio_library.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/audio/decibels.h"
#include "src/pipeline/audio/masked_copy.h"
#include "src/pipeline/audio/resampled_waveform.h"

namespace sluice::pipeline::audio {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> wave(std::size_t count) {
  std::vector<float> samples(count);
  for (std::size_t i = 0; i < count; ++i) samples[i] = std::sin(static_cast<float>(i * i % 1009));
  return samples;
}

TEST_CASE("Decibels are ten times the logarithm, above a least value and within a range") {
  std::vector<float> values;
  for (double value = 1e-9; value < 1e30; value *= 1.0371) values.push_back(static_cast<float>(value));
  values.insert(values.end(), {1.0F, 0.0F, -3.0F, 1e-38F, 0.999999F, 1.000001F, 1e-45F});
  for (const float range : {-1.0F, 80.0F, 0.0F}) {
    std::vector<float> decibels(values.size());
    const auto count = static_cast<int64_t>(values.size());
    REQUIRE(sluice_audio_decibels(values.data(), count, 10, 1e-10F, 3, range, decibels.data()) == 0);
    const auto decibels_of = [](float value) { return 10 * std::log10(std::max<double>(value, 1e-10F)) - 3; };
    const double largest = decibels_of(*std::ranges::max_element(values));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double lowest = range < 0 ? -kInfinity : largest - range;
      CAPTURE(values[i], decibels[i]);
      REQUIRE(std::abs(decibels[i] - std::max(decibels_of(values[i]), lowest)) < 1e-4);
    }
  }
}

TEST_CASE("Decibels have the same bits in wide registers, and at every place") {
  std::vector<float> values(67);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::exp(static_cast<float>(i) - 30.5F);
  const DecibelPlan plan{.multiplier = 20, .least = 1e-7F, .reference = 0, .range = {}};
  std::vector<float> narrow(67), wide(67), single(1);
  REQUIRE(to_decibels(plan, values, Registers::kEveryProcessors, narrow));
  REQUIRE(to_decibels(plan, values, Registers::kWidest, wide));
  REQUIRE(narrow == wide);
  for (std::size_t i = 0; i < values.size(); ++i) {
    REQUIRE(to_decibels(plan, {&values[i], 1}, Registers::kWidest, single));
    REQUIRE(single[0] == wide[i]);
  }
}

TEST_CASE("Decibels of what is not finite, or above no normal number, are left to torchaudio") {
  std::vector<float> values(20, 0.5F), decibels(20);
  const auto call = [&](float least) {
    return sluice_audio_decibels(values.data(), 20, 10, least, 0, -1, decibels.data());
  };
  REQUIRE(call(1e-10F) == 0);
  for (const float least : {0.0F, -1.0F, 1e-40F, kInfinity, std::nanf("")}) CHECK(call(least) != 0);
  for (const std::size_t place : {0U, 9U, 19U}) {
    for (const float bad : {kInfinity, -kInfinity, std::nanf("")}) {
      values.assign(20, 0.5F);
      values[place] = bad;
      CHECK(call(1e-10F) != 0);
    }
  }
}

// What torch computes: a convolution of the waveform in silence with every weight.
std::vector<double> convolved(const std::vector<float>& waveform, const SluiceResampling& asked, std::size_t outputs) {
  std::vector<double> result;
  for (std::size_t output = 0; output < outputs; ++output) {
    const auto phase = static_cast<int64_t>(output) % asked.phases;
    double sum = 0;
    for (int64_t tap = 0; tap < asked.taps; ++tap) {
      const int64_t at = static_cast<int64_t>(output) / asked.phases * asked.stride + tap - asked.border;
      if (at < 0 || at >= static_cast<int64_t>(waveform.size())) continue;
      sum += double{waveform[static_cast<std::size_t>(at)]} * asked.kernel[phase * asked.taps + tap];
    }
    result.push_back(sum);
  }
  return result;
}

TEST_CASE("Resampled waveforms are the convolution with all weights") {
  struct Case {
    int64_t phases, stride, border, samples;
  };
  for (const Case& c : {Case{1, 3, 19, 500}, Case{160, 441, 17, 3000}, Case{2, 1, 7, 40}, Case{5, 7, 3, 7}}) {
    const int64_t taps = 2 * c.border + c.stride;
    std::vector<float> kernel(static_cast<std::size_t>(c.phases * taps), 0.0F);
    for (int64_t phase = 0; phase < c.phases; ++phase) {  // Most weights are zero, or as good as that.
      for (int64_t i = 0; i < 2 * c.border; ++i) {
        const int64_t tap = phase * c.stride / c.phases + i;
        kernel[static_cast<std::size_t>(phase * taps + tap)] = i == 0 ? 1e-14F : std::cos(static_cast<float>(i));
      }
    }
    const SluiceResampling asked{c.phases, taps, c.stride, c.border, kernel.data()};
    const std::vector<float> waveform = wave(static_cast<std::size_t>(c.samples));
    const int64_t outputs = (c.samples * c.phases + c.stride - 1) / c.stride;
    std::vector<float> resampled(static_cast<std::size_t>(outputs));
    REQUIRE(sluice_audio_resample(&asked, waveform.data(), 1, c.samples, outputs, resampled.data()) == 0);
    const std::vector<double> expected = convolved(waveform, asked, resampled.size());
    for (std::size_t i = 0; i < resampled.size(); ++i) REQUIRE(std::abs(resampled[i] - expected[i]) < 1e-5);

    std::vector<float> narrow(resampled.size());
    WaveformResampler resampler;
    resampler.prepare({static_cast<std::size_t>(c.phases), static_cast<std::size_t>(taps),
                       static_cast<std::size_t>(c.stride), static_cast<std::size_t>(c.border)},
                      kernel.data());
    REQUIRE(resampler.run(waveform, Registers::kEveryProcessors, narrow));
    REQUIRE(narrow == resampled);

    std::vector<float> broken = waveform;
    broken.back() = kInfinity;
    CHECK(sluice_audio_resample(&asked, broken.data(), 1, c.samples, outputs, resampled.data()) != 0);
  }
}

TEST_CASE("Masks are copies with rows or columns of one value, whatever comes first in memory") {
  const std::vector<float> numbers = wave(2 * 19 * 21);
  for (const bool masks_rows : {false, true}) {
    for (const bool columns_first : {false, true}) {
      for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{19, 21}, {16, 8}, {1, 5}, {9, 1}}) {
        const SluiceMask asked{.planes = 2,
                               .rows = rows,
                               .columns = columns,
                               .first = masks_rows ? rows - 1 : columns / 2,
                               .count = 1,
                               .columns_first = columns_first,
                               .masks_rows = masks_rows,
                               .value = -7};
        std::vector<float> masked(static_cast<std::size_t>(2 * rows * columns)), narrow(masked.size() / 2);
        REQUIRE(sluice_audio_mask(&asked, numbers.data(), masked.data()) == 0);
        const auto [r, c] = std::pair(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
        copy_masked({r, c, columns_first, masks_rows, static_cast<std::size_t>(asked.first), 1, -7}, numbers.data(),
                    Registers::kEveryProcessors, narrow.data());
        REQUIRE(std::equal(narrow.begin(), narrow.end(), masked.begin()));
        for (std::size_t i = 0; i < masked.size(); ++i) {
          const std::size_t plane = i / (r * c), row = i / c % r, column = i % c;
          const std::size_t at = plane * r * c + (columns_first ? column * r + row : row * c + column);
          const bool is_masked = static_cast<int64_t>(masks_rows ? row : column) == asked.first;
          REQUIRE(masked[i] == (is_masked ? -7 : numbers[at]));
        }
      }
    }
  }
  std::vector<float> masked(6);
  for (const auto& [first, count] : {std::pair<int64_t, int64_t>{-1, 1}, {0, 4}, {4, 0}, {3, 1}, {0, -1}}) {
    const SluiceMask asked{.planes = 1,
                           .rows = 2,
                           .columns = 3,
                           .first = first,
                           .count = count,
                           .columns_first = 0,
                           .masks_rows = 0,
                           .value = 0};
    CHECK(sluice_audio_mask(&asked, numbers.data(), masked.data()) != 0);
  }
}

TEST_CASE("Channels are computed one by one") {
  const std::vector<float> waveform = wave(2 * 300), window(64, 1.0F);
  const SluiceSpectrogram asked{.transform_length = 64,
                                .hop_length = 30,
                                .window_length = 64,
                                .window = window.data(),
                                .bands = 0,
                                .matrix = nullptr,
                                .border = 1,
                                .magnitudes = 0,
                                .scale = 1};
  const int64_t frames = sluice_audio_frames(&asked, 300);
  REQUIRE(frames == 11);
  std::vector<float> both(2 * 11 * 33), second(11 * 33);
  REQUIRE(sluice_audio_spectrogram(&asked, waveform.data(), 2, 300, both.data()) == 0);
  REQUIRE(sluice_audio_spectrogram(&asked, waveform.data() + 300, 1, 300, second.data()) == 0);
  REQUIRE(std::equal(second.begin(), second.end(), both.begin() + 11 * 33));
}

TEST_CASE("Arguments that are out of bounds are refused before any memory is taken") {
  const std::vector<float> window(64, 1.0F), matrix(33, 1.0F), waveform(640, 0.5F);
  std::vector<float> shown(64 * 64);
  const SluiceSpectrogram sound{.transform_length = 64,
                                .hop_length = 32,
                                .window_length = 64,
                                .window = window.data(),
                                .bands = 1,
                                .matrix = matrix.data(),
                                .border = 1,
                                .magnitudes = 0,
                                .scale = 1};
  const auto call = [&](const SluiceSpectrogram& asked, int64_t channels = 1, int64_t samples = 640) {
    return sluice_audio_spectrogram(&asked, waveform.data(), channels, samples, shown.data());
  };
  REQUIRE(call(sound) == 0);
  const std::vector<std::function<void(SluiceSpectrogram&)>> breaks{
      [](auto& s) { s.transform_length = 0; },
      [](auto& s) { s.transform_length = 1 << 17; },
      [](auto& s) { s.transform_length = 74; },
      [](auto& s) { s.hop_length = 0; },
      [](auto& s) { s.hop_length = int64_t{1} << 40; },
      [](auto& s) { s.window_length = 65; },
      [](auto& s) { s.window_length = 0; },
      [](auto& s) { s.bands = -1; },
      [](auto& s) { s.bands = 5000; },
      [](auto& s) { s.border = 3; },
      [](auto& s) { s.scale = kInfinity; },
      [](auto& s) { s.window = nullptr; },
      [](auto& s) { s.matrix = nullptr; },
  };
  for (const auto& break_it : breaks) {
    SluiceSpectrogram asked = sound;
    break_it(asked);
    CHECK(call(asked) != 0);
  }
  for (const int64_t number : {int64_t{0}, int64_t{-1}, int64_t{1} << 62}) {
    CHECK(call(sound, number) != 0);
    CHECK(call(sound, 1, number) != 0);
  }
  const SluiceResampling resampling{.phases = 1, .taps = 64, .stride = 2, .border = 31, .kernel = window.data()};
  const auto resample = [&](const SluiceResampling& asked, int64_t outputs) {
    return sluice_audio_resample(&asked, waveform.data(), 1, 640, outputs, shown.data());
  };
  REQUIRE(resample(resampling, 320) == 0);
  CHECK(resample(resampling, 400) != 0);
  CHECK(resample({.phases = 0, .taps = 64, .stride = 2, .border = 31, .kernel = window.data()}, 320) != 0);
  CHECK(resample({.phases = 1, .taps = 64, .stride = 0, .border = 31, .kernel = window.data()}, 320) != 0);
  CHECK(resample({.phases = 1, .taps = 64, .stride = 2, .border = 65, .kernel = window.data()}, 320) != 0);
}

}  // namespace
}  // namespace sluice::pipeline::audio
