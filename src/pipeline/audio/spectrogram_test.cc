#include "src/pipeline/audio/spectrogram.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::pipeline::audio {
namespace {

// Of the largest number of a frame (docs/designs/audio.md).
constexpr double kTolerance = 1e-5;

std::vector<float> noise(std::size_t count, unsigned seed) {
  std::mt19937 draw(seed);
  std::vector<float> samples(count);
  for (float& sample : samples) sample = static_cast<float>(draw()) / 4294967296.0F - 0.5F;
  return samples;
}

std::vector<float> hann(std::size_t length) {
  std::vector<float> window(length);
  for (std::size_t i = 0; i < length; ++i) {
    const double turn = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length);
    window[i] = static_cast<float>(0.5 - 0.5 * std::cos(turn));
  }
  return window;
}

// A sample of the waveform with its borders, by the definition.
double bordered(const std::vector<float>& waveform, const SpectrogramPlan& plan, std::size_t position) {
  const auto length = static_cast<long>(waveform.size());
  const long border = plan.border == Border::kNone ? 0 : static_cast<long>(plan.transform_length / 2);
  long at = static_cast<long>(position) - border;
  if (at < 0 || at >= length) {
    if (plan.border == Border::kZeros) return 0;
    at = at < 0 ? -at : 2 * (length - 1) - at;
  }
  return waveform[static_cast<std::size_t>(at)];
}

// The bins of one frame, in double precision and by the definition.
std::vector<double> expected_bins(const std::vector<float>& waveform, const SpectrogramPlan& plan,
                                  const std::vector<float>& window, std::size_t frame) {
  const std::size_t length = plan.transform_length;
  const std::size_t offset = (length - window.size()) / 2;
  std::vector<double> bins;
  for (std::size_t k = 0; k <= length / 2; ++k) {
    std::complex<double> sum = 0;
    for (std::size_t i = 0; i < window.size(); ++i) {
      const double turn = -2 * std::numbers::pi * static_cast<double>((offset + i) * k % length);
      const double sample = bordered(waveform, plan, frame * plan.hop_length + offset + i) * window[i];
      sum += sample * std::polar(1.0, turn / static_cast<double>(length));
    }
    const double magnitude = std::abs(sum) * plan.scale;
    bins.push_back(plan.magnitudes ? magnitude : magnitude * magnitude);
  }
  return bins;
}

void require_close(const float* found, const std::vector<double>& expected) {
  const double largest = *std::ranges::max_element(expected);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    CAPTURE(k, found[k], expected[k]);
    REQUIRE(std::abs(found[k] - expected[k]) <= kTolerance * largest);
  }
}

TEST_CASE("The bins of every length of transform are those of the definition") {
  struct Case {
    std::size_t transform, window, hop, samples;
    Border border;
    bool magnitudes;
  };
  const std::vector<Case> cases{
      {512, 512, 160, 4000, Border::kReflected, false},
      {400, 400, 200, 3001, Border::kReflected, false},
      {256, 200, 64, 1000, Border::kZeros, true},
      {480, 480, 480, 4803, Border::kNone, true},
      {882, 882, 441, 2000, Border::kReflected, false},
      {75, 75, 20, 300, Border::kReflected, false},
      {31, 9, 3, 70, Border::kZeros, false},
      {2 * 29, 58, 7, 130, Border::kReflected, true},
      {8, 8, 1, 9, Border::kReflected, false},
      {1, 1, 1, 5, Border::kNone, false},
      {2, 2, 1, 5, Border::kReflected, true},
      {2048, 2048, 512, 2048, Border::kNone, false},
      {1001, 1001, 500, 1001, Border::kZeros, false},
      {6, 6, 2, 100, Border::kReflected, false},
  };
  Spectrogram spectrogram;  // The same for all of them, as a thread has one.
  for (const Case& c : cases) {
    CAPTURE(c.transform, c.window, c.hop, c.samples);
    const SpectrogramPlan plan{c.transform, c.hop, c.border, c.magnitudes, 0.7F};
    const std::vector<float> waveform = noise(c.samples, 1), window = hann(c.window);
    REQUIRE(Spectrogram::supports(c.transform));
    spectrogram.prepare(plan, window);
    const std::size_t frames = Spectrogram::frames_of(plan, c.samples);
    std::vector<float> shown(frames * spectrogram.width());
    REQUIRE(spectrogram.run(waveform, Registers::kWidest, shown.data()));
    for (const std::size_t frame : {std::size_t{0}, frames / 3, frames / 2, frames - 1}) {
      require_close(&shown[frame * spectrogram.width()], expected_bins(waveform, plan, window, frame));
    }
  }
}

TEST_CASE("Lengths with a large prime factor are not supported") {
  for (const std::size_t length : {1103U, 2 * 37U, 37U, 4 * 41U}) CHECK_FALSE(Spectrogram::supports(length));
  for (const std::size_t length : {1U, 2U, 62U, 31U, 3 * 7 * 13U, 1U << 16}) CHECK(Spectrogram::supports(length));
}

TEST_CASE("The number of frames is torch's, and zero where torch refuses") {
  struct Case {
    std::size_t transform, hop, samples, want;
    Border border;
  };
  const std::vector<Case> cases{{400, 200, 400, 1, Border::kNone},
                                {400, 200, 399, 0, Border::kNone},
                                {400, 200, 599, 1, Border::kNone},
                                {400, 200, 600, 2, Border::kNone},
                                {400, 200, 201, 2, Border::kReflected},
                                {400, 200, 200, 0, Border::kReflected},
                                {400, 160, 16000, 101, Border::kReflected},
                                {401, 160, 1, 1, Border::kZeros},
                                {0, 1, 5, 0, Border::kNone},
                                {4, 0, 5, 0, Border::kNone}};
  for (const Case& c : cases) {
    CAPTURE(c.transform, c.hop, c.samples);
    CHECK(Spectrogram::frames_of({c.transform, c.hop, c.border, false, 1}, c.samples) == c.want);
  }
}

TEST_CASE("Bands are weighted sums of bins, whatever weights are zero") {
  const SpectrogramPlan plan{64, 16, Border::kReflected, false, 1};
  const std::vector<float> waveform = noise(700, 2), window = hann(64);
  constexpr std::size_t kBins = 33, kBands = 11;
  std::vector<float> matrix(kBins * kBands, 0.0F);
  for (std::size_t band = 0; band < kBands; ++band) {  // Band 4 has none, band 7 a gap, band 10 all.
    for (std::size_t bin = band; band != 4 && bin < (band == 10 ? kBins : 2 * band + 1); ++bin) {
      if (band != 7 || bin != 9) matrix[bin * kBands + band] = 0.1F * static_cast<float>(bin + 1);
    }
  }
  Spectrogram spectrogram;
  spectrogram.prepare(plan, window);
  spectrogram.show_bands(matrix.data(), kBands);
  const std::size_t frames = Spectrogram::frames_of(plan, waveform.size());
  std::vector<float> shown(frames * kBands);
  REQUIRE(spectrogram.run(waveform, Registers::kWidest, shown.data()));
  for (std::size_t frame = 0; frame < frames; ++frame) {
    const std::vector<double> bins = expected_bins(waveform, plan, window, frame);
    std::vector<double> bands(kBands, 0.0);
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      for (std::size_t band = 0; band < kBands; ++band) bands[band] += bins[bin] * matrix[bin * kBands + band];
    }
    require_close(&shown[frame * kBands], bands);
  }
}

TEST_CASE("Wide registers give the same bits as those of every processor") {
  const std::vector<float> waveform = noise(5000, 3);
  for (const std::size_t length : {512U, 400U, 75U, 882U}) {
    for (const bool magnitudes : {false, true}) {
      const SpectrogramPlan plan{length, 100, Border::kReflected, magnitudes, 1};
      const std::size_t frames = Spectrogram::frames_of(plan, waveform.size());
      std::vector<float> shown[2];
      for (const Registers registers : {Registers::kEveryProcessors, Registers::kWidest}) {
        Spectrogram spectrogram;
        spectrogram.prepare(plan, hann(length));
        std::vector<float>& numbers = shown[static_cast<int>(registers)];
        numbers.resize(frames * spectrogram.width());
        REQUIRE(spectrogram.run(waveform, registers, numbers.data()));
      }
      REQUIRE(shown[0] == shown[1]);
    }
  }
}

TEST_CASE("A frame's numbers do not depend on the frames around it") {
  const SpectrogramPlan plan{128, 32, Border::kNone, false, 1};
  const std::vector<float> waveform = noise(128 + 32 * 20, 4);
  Spectrogram spectrogram;
  spectrogram.prepare(plan, hann(128));
  std::vector<float> all(21 * 65), one(65);
  REQUIRE(spectrogram.run(waveform, Registers::kWidest, all.data()));
  for (std::size_t frame = 0; frame < 21; ++frame) {
    REQUIRE(spectrogram.run({waveform.data() + 32 * frame, 128}, Registers::kWidest, one.data()));
    REQUIRE(std::equal(one.begin(), one.end(), all.begin() + static_cast<std::ptrdiff_t>(65 * frame)));
  }
}

TEST_CASE("Silence is shown; numbers that are not finite, or that underflow, are left to torch") {
  const SpectrogramPlan plan{64, 32, Border::kZeros, false, 1};
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<float, bool>> cases{{0.0F, true},          {1e-3F, true}, {1e-17F, false},
                                                  {1e25F, false},        {1e18F, true}, {infinity, false},
                                                  {std::nanf(""), false}};
  for (const auto& [loudest, want] : cases) {
    CAPTURE(loudest);
    std::vector<float> waveform(640, 0.0F);
    waveform[500] = loudest;
    Spectrogram spectrogram;
    spectrogram.prepare(plan, hann(64));
    std::vector<float> shown(Spectrogram::frames_of(plan, waveform.size()) * spectrogram.width());
    CHECK(spectrogram.run(waveform, Registers::kWidest, shown.data()) == want);
  }
}

}  // namespace
}  // namespace sluice::pipeline::audio
