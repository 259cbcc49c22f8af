#include "src/pipeline/audio/flac_stream.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/testing/flac_encoder.h"

namespace sluice::pipeline::audio {
namespace {

using testing::FlacFrame;
using testing::FlacSubframe;
using Kind = FlacSubframe::Kind;
using Samples = std::vector<std::int32_t>;

// Below 2^14 in magnitude, and multiples of 4.
Samples voice(std::size_t count, int seed = 0) {
  Samples samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double at = static_cast<double>(i) + 100.0 * seed;
    samples[i] = static_cast<std::int32_t>(7000 * std::sin(at * 0.03) + 1000 * std::sin(at * at)) / 4 * 4;
  }
  return samples;
}

std::vector<float> decoded(const std::vector<std::uint8_t>& file) {
  const auto stream = read_flac_stream(file);
  REQUIRE(stream);
  std::vector<float> samples(stream->frames * stream->channels);
  FlacDecoder decoder;
  REQUIRE(decoder.decode<float>(file, *stream, samples));
  return samples;
}

bool decodes(const std::vector<std::uint8_t>& file) {
  const auto stream = read_flac_stream(file);
  if (!stream || stream->frames > 100000) return false;
  std::vector<std::int16_t> samples(stream->frames * stream->channels);
  FlacDecoder decoder;
  return decoder.decode<std::int16_t>(file, *stream, samples);
}

TEST_CASE("A FLAC channel of every kind has the samples that were written") {
  const std::vector<std::int32_t> twelve{90, -40, 30, -20, 10, -5, 4, -3, 2, -1, 1, 1};
  const std::vector<std::int32_t> ten(twelve.begin(), twelve.end() - 2);
  std::vector<std::int32_t> large(8), thirty_two(32, 3);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = i % 2 == 0 ? 16383 : -16384;
  const std::vector<std::pair<std::string, FlacSubframe>> cases{
      {"verbatim", {}},
      {"fixed 0", {.kind = Kind::kFixed, .order = 0}},
      {"fixed 1", {.kind = Kind::kFixed, .order = 1, .parameter = 0}},
      {"fixed 2", {.kind = Kind::kFixed, .order = 2, .parameter = 14}},
      {"fixed 3", {.kind = Kind::kFixed, .order = 3, .parameter = 30, .wide_parameters = true}},
      {"fixed 4", {.kind = Kind::kFixed, .order = 4, .parameter = 3, .partition_order = 4}},
      {"linear 1", {.kind = Kind::kLinear, .weights = {120}, .shift = 7}},
      {"linear 3", {.kind = Kind::kLinear, .weights = {9, -7, 2}, .shift = 2, .parameter = 8, .partition_order = 5}},
      {"linear 10", {.kind = Kind::kLinear, .weights = ten, .shift = 6, .partition_order = 3}},
      {"linear 8, whose sums need 64 bits", {.kind = Kind::kLinear, .weights = large, .shift = 13, .parameter = 12}},
      {"linear 12", {.kind = Kind::kLinear, .weights = twelve, .shift = 6, .partition_order = 3}},
      {"linear 32", {.kind = Kind::kLinear, .weights = thirty_two, .shift = 8, .parameter = 9}},
      {"escaped", {.kind = Kind::kFixed, .order = 2, .escaped = true, .partition_order = 2}},
      {"escaped, wide", {.kind = Kind::kFixed, .order = 1, .wide_parameters = true, .escaped = true}},
      {"wasted bits", {.kind = Kind::kLinear, .weights = {1}, .wasted_bits = 2}},
      {"wasted bits, verbatim", {.wasted_bits = 1}},
  };
  for (const auto& [name, how] : cases) {
    CAPTURE(name);
    const Samples first = voice(256), last = voice(192, 1);
    const std::vector<float> samples =
        decoded(testing::encode_flac(16, 1, {{0, {first}, how}, {0, {first}, how}, {0, {last}, how}}));
    REQUIRE(samples.size() == 2 * 256 + 192);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::int32_t expected = i < 512 ? first[i % 256] : last[i - 512];
      REQUIRE(samples[i] * 32768 == static_cast<float>(expected));
    }
  }
}

TEST_CASE("A FLAC stream of many frames has every frame's samples, whatever their predictors and channels") {
  for (const unsigned channels : {1U, 3U, 8U}) {
    CAPTURE(channels);
    std::vector<FlacFrame> frames;
    for (int number = 0; number < 19; ++number) {
      FlacFrame frame{.channel_code = channels - 1,
                      .channels = {},
                      .how = {.kind = Kind::kFixed, .order = static_cast<unsigned>(number) % 5}};
      if (number % 3 == 0)
        frame.how = {
            .kind = Kind::kLinear, .weights = std::vector<std::int32_t>(number % 2 == 0 ? 12 : 8, 3), .shift = 5};
      for (unsigned channel = 0; channel < channels; ++channel) {
        frame.channels.push_back(voice(number < 18 ? 64 : 21, number * 8 + static_cast<int>(channel)));
      }
      frames.push_back(std::move(frame));
    }
    const std::vector<float> samples = decoded(testing::encode_flac(16, channels, frames));
    std::size_t at = 0;
    for (const FlacFrame& frame : frames) {
      for (std::size_t i = 0; i < frame.channels[0].size(); ++i) {
        for (const Samples& channel : frame.channels) REQUIRE(samples[at++] * 32768 == static_cast<float>(channel[i]));
      }
    }
    CHECK(at == samples.size());
  }
}

TEST_CASE("The loudest FLAC samples have the sums that 32 bits can just hold") {
  Samples loud(256);
  for (std::size_t i = 0; i < loud.size(); ++i) loud[i] = i % 2 == 0 ? 32767 : -32768;
  const FlacSubframe how{
      .kind = Kind::kLinear, .weights = {16383, -16384, 16383, -16384}, .shift = 14, .parameter = 14};
  const std::vector<float> samples = decoded(testing::encode_flac(16, 1, {{0, {loud}, how}}));
  for (std::size_t i = 0; i < samples.size(); ++i) REQUIRE(samples[i] * 32768 == static_cast<float>(loud[i]));
}

TEST_CASE("FLAC's differences of two channels are undone") {
  const Samples left = voice(64), right = voice(64, 3);
  for (const unsigned code : {1U, 8U, 9U, 10U}) {
    CAPTURE(code);
    FlacFrame frame{.channel_code = code, .channels = {left, right}, .how = {.kind = Kind::kFixed, .order = 1}};
    for (std::size_t i = 0; i < left.size(); ++i) {
      const std::int32_t difference = left[i] - right[i] - 1;
      if (code == 8) frame.channels[1][i] = difference;
      if (code == 9) frame.channels[0][i] = difference;
      if (code == 10) frame.channels[0][i] = (left[i] + right[i] + 1) >> 1, frame.channels[1][i] = difference;
    }
    const std::vector<float> samples = decoded(testing::encode_flac(16, 2, {frame}));
    for (std::size_t i = 0; i < left.size(); ++i) {
      const std::int32_t other = code == 1 ? right[i] : right[i] + 1;
      const std::int32_t first = code == 9 ? left[i] - 1 : left[i];
      REQUIRE(samples[2 * i] * 32768 == static_cast<float>(first));
      REQUIRE(samples[2 * i + 1] * 32768 == static_cast<float>(code == 9 ? right[i] : other));
    }
  }
}

TEST_CASE("A FLAC stream of 24 bits has shares of its largest number, and no int16") {
  const Samples samples{8388607, -8388608, 0, 1, -1, 77777, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17};
  const std::vector<std::uint8_t> file = testing::encode_flac(24, 1, {{0, {samples}, {}}});
  const std::vector<float> found = decoded(file);
  for (std::size_t i = 0; i < samples.size(); ++i) CHECK(found[i] == static_cast<float>(samples[i]) / 8388608.0F);
  CHECK_FALSE(decodes(file));
}

TEST_CASE("Constant samples are repeated") {
  for (const float sample :
       decoded(testing::encode_flac(16, 1, {{0, {Samples(500, -4)}, {.kind = Kind::kConstant}}}))) {
    REQUIRE(sample == -4.0F / 32768);
  }
}

TEST_CASE("FLAC files that are not flawless are left to libsndfile") {
  const std::vector<std::uint8_t> sound =
      testing::encode_flac(16, 1, {{0, {voice(64)}, {.kind = Kind::kFixed, .order = 2}}});
  constexpr std::size_t kFrame = 42;
  REQUIRE(decodes(sound));
  const auto changed = [&](std::size_t at, unsigned by) {
    std::vector<std::uint8_t> file = sound;
    file[at] = static_cast<std::uint8_t>(file[at] ^ by);
    return file;
  };
  for (std::size_t length = 0; length < sound.size(); ++length) {
    REQUIRE_FALSE(decodes({sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(length)}));
  }
  for (std::size_t at = kFrame; at < sound.size(); ++at) {
    for (unsigned bit = 1; bit < 256; bit *= 2) REQUIRE_FALSE(decodes(changed(at, bit)));  // The checksums say so.
  }
  CHECK_FALSE(decodes(changed(0, 0x20)));   // another marker
  CHECK_FALSE(decodes(changed(4, 0x80)));   // more metadata to come
  CHECK_FALSE(decodes(changed(7, 0x01)));   // another length of the stream's block
  CHECK_FALSE(decodes(changed(20, 0x02)));  // two channels
  CHECK_FALSE(decodes(changed(21, 0x30)));  // other bits
  CHECK_FALSE(decodes(changed(25, 0x01)));  // one sample more
  CHECK_FALSE(decodes(changed(21, 0x01)));  // samples without end
}

TEST_CASE("FLAC frames that no encoder writes are left to libsndfile, whatever their checksums say") {
  const std::vector<std::pair<std::string, FlacSubframe>> cases{
      {"samples of more bits than the stream's", {.kind = Kind::kFixed, .order = 0, .parameter = 12}},
      {"residuals above 32 bits", {.kind = Kind::kFixed, .order = 0, .parameter = 30, .wide_parameters = true}},
      {"more partitions than samples", {.kind = Kind::kFixed, .order = 1, .partition_order = 5}},
      {"a partition shorter than what is needed before it", {.kind = Kind::kFixed, .order = 4, .partition_order = 3}},
  };
  for (const auto& [name, how] : cases) {
    CAPTURE(name);
    Samples samples(16, 3);
    if (how.order == 0) samples[7] = how.parameter == 30 ? 2147483647 : 40000;
    CHECK_FALSE(decodes(testing::encode_flac(16, 1, {{0, {samples}, how}})));
  }
}

}  // namespace
}  // namespace sluice::pipeline::audio
