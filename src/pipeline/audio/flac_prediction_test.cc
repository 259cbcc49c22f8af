#include "src/pipeline/audio/flac_prediction.h"

#include <string>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::pipeline::audio {
namespace {

using Samples = std::vector<std::int32_t>;

// What an encoder writes for the samples, by the definition of a predictor.
Samples coded(const FlacRow& row, const Samples& samples) {
  Samples codes = samples;
  for (std::size_t at = row.predictor.order; at < row.length; ++at) {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < row.predictor.order; ++i)
      sum += std::int64_t{row.predictor.weights[i]} * samples[at - 1 - i];
    const auto prediction = static_cast<std::int32_t>(sum >> row.predictor.shift);
    codes[at] = static_cast<std::int32_t>(flac_code_of(samples[at] - prediction));
  }
  return codes;
}

FlacRow row_of(unsigned order, std::size_t length, unsigned bits) {
  FlacRow row{.predictor = {.order = order, .shift = order % 12}, .bits = bits, .length = length};
  for (unsigned i = 0; i < order; ++i) row.predictor.weights[i] = static_cast<std::int32_t>(i * 37 % 101) - 50;
  return row;
}

Samples random_samples(const FlacRow& row, std::uint32_t state) {
  Samples samples(row.length);
  for (std::int32_t& sample : samples) {
    state = state * 1664525 + 1013904223;
    sample = static_cast<std::int32_t>(state) >> (32 - row.bits);
  }
  return samples;
}

TEST_CASE("Rows of FLAC codes become the samples that were coded, in all registers") {
  struct Case {
    std::string name;
    std::vector<FlacRow> rows;
  };
  const std::vector<Case> cases{
      {"one row", {row_of(8, 4096, 16)}},
      {"usual orders, some rows short",
       {row_of(8, 64, 16), row_of(0, 64, 16), row_of(1, 1, 16), row_of(5, 17, 12), row_of(8, 9, 16)}},
      {"eight rows, high orders",
       {row_of(12, 100, 16), row_of(32, 100, 16), row_of(9, 33, 16), row_of(0, 3, 16), row_of(2, 40, 8),
        row_of(3, 100, 16), row_of(31, 32, 16), row_of(8, 99, 17)}},
      {"sums of 64 bits", {row_of(32, 200, 25), row_of(8, 100, 16), row_of(12, 40, 24)}},
  };
  for (const auto& [name, rows] : cases) {
    for (const Registers registers : {Registers::kEveryProcessors, Registers::kWidest}) {
      CAPTURE(name, registers);
      constexpr std::size_t kStride = 4096;
      Samples samples(kLanes * kStride);
      std::vector<Samples> expected;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        expected.push_back(random_samples(rows[i], static_cast<std::uint32_t>(i)));
        const Samples codes = coded(rows[i], expected.back());
        std::copy(codes.begin(), codes.end(), samples.begin() + static_cast<std::ptrdiff_t>(i * kStride));
      }
      REQUIRE(add_flac_predictions(rows, kStride, registers, samples.data()));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto* const begin = samples.data() + i * kStride;
        CHECK(Samples(begin, begin + rows[i].length) == expected[i]);
      }
    }
  }
}

TEST_CASE("A FLAC sample that is wider than its row is told, and wasted bits are zeros behind") {
  constexpr std::size_t kStride = 16;
  for (const std::int32_t sample : {-8, 7, 8, -9}) {
    CAPTURE(sample);
    Samples samples(kLanes * kStride);
    samples[kStride + 10] = static_cast<std::int32_t>(flac_code_of(sample));
    const std::vector<FlacRow> rows{{.bits = 16, .length = 16}, {.bits = 4, .wasted = 3, .length = 11}};
    CHECK(add_flac_predictions(rows, kStride, Registers::kWidest, samples.data()) == (sample >= -8 && sample <= 7));
    if (sample >= -8 && sample <= 7) CHECK(samples[kStride + 10] == sample * 8);
  }
}

}  // namespace
}  // namespace sluice::pipeline::audio
