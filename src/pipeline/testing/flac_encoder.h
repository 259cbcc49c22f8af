// FLAC streams for tests, as RFC 9639 has them: one that says how each channel of each frame is to be written.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::pipeline::testing {

struct FlacSubframe {
  enum class Kind { kConstant, kVerbatim, kFixed, kLinear };
  Kind kind = Kind::kVerbatim;
  unsigned order = 0;                 // kFixed
  std::vector<std::int32_t> weights;  // kLinear: of the latest sample first
  unsigned shift = 0;                 // kLinear
  unsigned parameter = 5;             // of the Rice codes
  bool wide_parameters = false;       // of 5 bits
  bool escaped = false;               // residuals of 20 bits in the place of codes
  unsigned partition_order = 0;
  unsigned wasted_bits = 0;
};

// Bytes of a channel code (of both channels 0 and 1 as they are, or 8, 9, 10 with a difference), and each channel's
// samples as they are written, which a difference already is.
struct FlacFrame {
  unsigned channel_code = 0;
  std::vector<std::vector<std::int32_t>> channels;
  FlacSubframe how;
};

// A stream of frames of one block size, which the last may fall short of.
std::vector<std::uint8_t> encode_flac(unsigned bits, unsigned channels, const std::vector<FlacFrame>& frames);

// Of all bytes before the last two, as a frame of one's own needs it.
std::uint16_t flac_checksum(const std::uint8_t* bytes, std::size_t count);

}  // namespace sluice::pipeline::testing
