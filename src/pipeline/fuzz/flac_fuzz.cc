// A FLAC file: left to libsndfile, or decoded, to the same samples as whole numbers and as shares. And one channel's
// bits, as checksums keep most inputs from getting so far.
#include <algorithm>
#include <cmath>
#include <vector>

#include "src/pipeline/audio/flac_stream.h"
#include "src/pipeline/audio/flac_subframe.h"
#include "src/pipeline/fuzz/fuzz.h"

namespace sluice::pipeline::fuzz {
namespace {

constexpr std::uint64_t kSamplesMax = 1 << 18;

void check_file(std::span<const std::uint8_t> file) {
  const auto stream = audio::read_flac_stream(file);
  if (!stream || stream->frames * stream->channels > kSamplesMax) return;
  std::vector<float> shares(stream->frames * stream->channels);
  std::vector<double> precise(shares.size());
  audio::FlacDecoder decoder;
  const bool decodes = decoder.decode<float>(file, *stream, shares);
  FUZZ_CHECK(decoder.decode<double>(file, *stream, precise) == decodes);
  FUZZ_CHECK(!decodes || std::equal(shares.begin(), shares.end(), precise.begin()));
  FUZZ_CHECK(!decodes || std::ranges::all_of(shares, [](float share) { return std::abs(share) <= 1; }));
}

// The first byte says how many bits a sample has, the second one how many samples there are.
void check_subframe(std::span<const std::uint8_t> input) {
  const unsigned bits = 4 + input[0] % 22;
  audio::FlacRow row{.length = 1 + std::size_t{input[1]} * 4};
  const std::size_t stride = (row.length + audio::kLanes - 1) / audio::kLanes * audio::kLanes;
  std::vector<std::int32_t> samples(audio::kLanes * stride);
  audio::BitReader reader(input.subspan(2));
  if (!audio::read_flac_subframe(reader, bits, row, samples.data())) return;
  std::vector<std::int32_t> portable = samples;
  const bool fits = audio::add_flac_predictions({&row, 1}, stride, audio::Registers::kWidest, samples.data());
  FUZZ_CHECK(audio::add_flac_predictions({&row, 1}, stride, audio::Registers::kEveryProcessors, portable.data()) ==
             fits);
  FUZZ_CHECK(samples == portable);
  if (!fits) return;
  samples.resize(row.length);
  const std::int32_t most = (1 << (bits - 1)) - 1;
  FUZZ_CHECK(std::ranges::all_of(samples, [=](std::int32_t sample) { return sample >= -most - 1 && sample <= most; }));
}

}  // namespace

void flac(std::string_view input) {
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  check_file(bytes);
  if (bytes.size() > 2) check_subframe(bytes);
}

}  // namespace sluice::pipeline::fuzz
