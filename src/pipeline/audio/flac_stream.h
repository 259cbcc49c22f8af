// FLAC streams (RFC 9639): the metadata before their frames, and their samples.
//
// Only whole, flawless streams are decoded here, to the numbers that libsndfile gives of them. Everything else (damaged
// streams, ones without a length, more than 24 bits or 8 channels, an ID3 tag in front) is left to libsndfile.
//
// Thread safety: none; each thread has its own FlacDecoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::pipeline::audio {

struct FlacStream {
  unsigned channels;
  unsigned bits;  // of a sample
  unsigned rate_hertz;
  std::uint64_t frames;     // samples of a channel
  unsigned block_most;      // samples of a channel in one of the stream's frames
  std::size_t first_frame;  // offset in the file
};

// The metadata; nothing for what is left to libsndfile.
std::optional<FlacStream> read_flac_stream(std::span<const std::uint8_t> file);

class FlacDecoder {
 public:
  // Writes [stream.frames][stream.channels] samples: whole numbers as int16 (where the stream has 16 bits), or shares
  // of the largest one. False, and the samples are unspecified, for what is left to libsndfile. REQUIRES:
  // samples.size() == stream.frames * stream.channels
  template <typename Sample>
  bool decode(std::span<const std::uint8_t> file, const FlacStream& stream, std::span<Sample> samples);

 private:
  std::vector<std::int32_t> blocks_;  // [channels][block_most]
};

extern template bool FlacDecoder::decode(std::span<const std::uint8_t>, const FlacStream&, std::span<float>);
extern template bool FlacDecoder::decode(std::span<const std::uint8_t>, const FlacStream&, std::span<double>);
extern template bool FlacDecoder::decode(std::span<const std::uint8_t>, const FlacStream&, std::span<std::int16_t>);

}  // namespace sluice::pipeline::audio
