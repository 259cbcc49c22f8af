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

#include "src/pipeline/audio/flac_prediction.h"

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
  struct Frame;

  // Reads the frame at the begin of `file`, whose rows are the next ones, and shortens `file` by it.
  std::optional<Frame> read_frame(std::span<const std::uint8_t>& file, const FlacStream& stream, std::uint64_t position,
                                  std::uint64_t number);

  std::size_t stride_ = 0;
  std::vector<std::int32_t> samples_;  // [kLanes][stride_]
  std::vector<FlacRow> rows_;          // at most kLanes: the channels of some frames
};

extern template bool FlacDecoder::decode(std::span<const std::uint8_t>, const FlacStream&, std::span<float>);
extern template bool FlacDecoder::decode(std::span<const std::uint8_t>, const FlacStream&, std::span<double>);
extern template bool FlacDecoder::decode(std::span<const std::uint8_t>, const FlacStream&, std::span<std::int16_t>);

}  // namespace sluice::pipeline::audio
