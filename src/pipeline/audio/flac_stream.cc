#include "src/pipeline/audio/flac_stream.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "src/pipeline/audio/bit_reader.h"
#include "src/pipeline/audio/flac_subframe.h"

namespace sluice::pipeline::audio {
namespace {

constexpr std::array<std::uint8_t, 4> kMarker{'f', 'L', 'a', 'C'};
constexpr std::size_t kStreamInfoBytes = 34;
constexpr unsigned kChannelsMax = 8;
constexpr std::uint64_t kFramesMax = std::uint64_t{1} << 28;
constexpr std::size_t kFrameBytesMin = 9;  // header of 6 bytes, one subframe of 1, checksum of 2
constexpr unsigned kBlockMax = 65535;

// Checksums of FLAC: polynomials over the two-element field, the highest bit first, from zero.
template <typename Sum, unsigned kPolynomial>
constexpr std::array<Sum, 256> checksum_table() {
  constexpr unsigned kTop = sizeof(Sum) * 8 - 1;
  std::array<Sum, 256> table{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    unsigned sum = byte << (kTop - 7);
    for (int bit = 0; bit < 8; ++bit) sum = (sum << 1) ^ ((sum >> kTop & 1) != 0 ? kPolynomial : 0);
    table[byte] = static_cast<Sum>(sum);
  }
  return table;
}

constexpr auto kTableOf8 = checksum_table<std::uint8_t, 0x107>();
constexpr auto kTableOf16 = checksum_table<std::uint16_t, 0x18005>();

// tables[i][byte]: what a byte adds to the sum when i zero bytes follow. So many bytes are summed at once.
constexpr std::size_t kBytesAtOnce = 16;
constexpr auto kTablesOf16 = [] {
  std::array<std::array<std::uint16_t, 256>, kBytesAtOnce> tables{kTableOf16};
  for (std::size_t i = 1; i < kBytesAtOnce; ++i) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint16_t before = tables[i - 1][byte];
      tables[i][byte] = static_cast<std::uint16_t>(before << 8 ^ kTableOf16[before >> 8]);
    }
  }
  return tables;
}();

std::uint8_t sum_of_8(std::span<const std::uint8_t> bytes) {
  std::uint8_t sum = 0;
  for (const std::uint8_t byte : bytes) sum = kTableOf8[sum ^ byte];
  return sum;
}

std::uint16_t sum_of_16(std::span<const std::uint8_t> bytes) {
  std::uint16_t sum = 0;
  for (; bytes.size() >= kBytesAtOnce; bytes = bytes.subspan(kBytesAtOnce)) {
    unsigned next = 0;  // The last two bytes to be added are those that wait for the sum before.
    for (std::size_t i = 2; i < kBytesAtOnce; ++i) next ^= kTablesOf16[kBytesAtOnce - 1 - i][bytes[i]];
    next ^= kTablesOf16[kBytesAtOnce - 2][bytes[1] ^ (sum & 0xff)] ^ kTablesOf16[kBytesAtOnce - 1][bytes[0] ^ sum >> 8];
    sum = static_cast<std::uint16_t>(next);
  }
  for (const std::uint8_t byte : bytes) sum = static_cast<std::uint16_t>(sum << 8 ^ kTableOf16[sum >> 8 ^ byte]);
  return sum;
}

// Channels of a frame, and which of them, if any, is the difference of both.
enum class Stereo { kNone, kLeftSide, kSideRight, kMidSide };

struct FrameHeader {
  unsigned block = 0;
  Stereo stereo = Stereo::kNone;
};

// The number in front of a frame, coded as UTF-8 would.
std::optional<std::uint64_t> read_number(BitReader& reader) {
  const std::uint32_t first = reader.read(8);
  const unsigned ones = static_cast<unsigned>(std::countl_one(static_cast<std::uint8_t>(first)));
  if (ones == 1 || ones > 7) return std::nullopt;
  std::uint64_t number = ones == 0 ? first : first & ((1U << (7 - ones)) - 1);
  for (unsigned i = 1; i < ones; ++i) {
    const std::uint32_t byte = reader.read(8);
    if (byte >> 6 != 2) return std::nullopt;
    number = number << 6 | (byte & 63);
  }
  return number;
}

unsigned read_block(BitReader& reader, unsigned code) {
  if (code == 1) return 192;
  if (code >= 2 && code <= 5) return 576U << (code - 2);
  if (code == 6) return reader.read(8) + 1;
  if (code == 7) return reader.read(16) + 1;
  return code >= 8 ? 256U << (code - 8) : 0;
}

// True where a rate's code says the stream's rate.
bool has_rate(BitReader& reader, unsigned code, unsigned rate_hertz) {
  constexpr std::array<unsigned, 12> kRates{0,     88200, 176400, 192000, 8000,  16000,
                                            22050, 24000, 32000,  44100,  48000, 96000};
  if (code == 0) return true;
  if (code < kRates.size()) return kRates[code] == rate_hertz;
  if (code == 12) return reader.read(8) * 1000 == rate_hertz;
  return code != 15 && reader.read(16) * (code == 14 ? 10 : 1) == rate_hertz;
}

bool has_bits(unsigned code, unsigned bits) {
  constexpr std::array<unsigned, 8> kBits{0, 8, 12, 3, 16, 20, 24, 32};
  return code == 0 || kBits[code] == bits;
}

// Of the frame whose first sample is `position`, and the number `number` of that frame.
std::optional<FrameHeader> read_header(BitReader& reader, std::span<const std::uint8_t> bytes, const FlacStream& stream,
                                       std::uint64_t position, std::uint64_t number) {
  constexpr std::uint32_t kSync = 0x3ffe;
  if (reader.read(14) != kSync || reader.read(1) != 0) return std::nullopt;
  const bool variable = reader.read(1) != 0;
  const unsigned block_code = reader.read(4), rate_code = reader.read(4);
  const unsigned channels_code = reader.read(4), bits_code = reader.read(3);
  if (reader.read(1) != 0 || !has_bits(bits_code, stream.bits)) return std::nullopt;
  if (read_number(reader) != (variable ? position : number)) return std::nullopt;
  FrameHeader header{.block = read_block(reader, block_code)};
  if (header.block == 0 || header.block > stream.block_most) return std::nullopt;
  if (!has_rate(reader, rate_code, stream.rate_hertz)) return std::nullopt;
  if (channels_code >= 8) header.stereo = static_cast<Stereo>(channels_code - 7);
  if (channels_code > 10 || (channels_code >= 8 ? 2 : channels_code + 1) != stream.channels) return std::nullopt;
  const std::size_t length = reader.position();
  if (reader.read(8) != sum_of_8(bytes.first(length)) || reader.overran()) return std::nullopt;
  return header;
}

// False for samples of more bits than the stream's.
bool undo_stereo(Stereo stereo, unsigned bits, std::int32_t* first, std::int32_t* second, std::size_t count) {
  std::uint32_t magnitudes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t a = first[i], b = second[i];
    if (stereo == Stereo::kLeftSide) second[i] = a - b;
    if (stereo == Stereo::kSideRight) first[i] = a + b;
    if (stereo == Stereo::kMidSide) {
      const std::int32_t doubled = a * 2 + (b & 1);
      first[i] = (doubled + b) >> 1, second[i] = (doubled - b) >> 1;
    }
    magnitudes |= static_cast<std::uint32_t>((first[i] ^ first[i] >> 31) | (second[i] ^ second[i] >> 31));
  }
  return magnitudes >> (bits - 1) == 0;
}

// kDistance: between the samples of a channel; 0: it is `distance`.
template <std::size_t kDistance, typename Sample>
void write_samples(std::span<const std::int32_t> block, double share, std::size_t distance, Sample* to) {
  if constexpr (kDistance != 0) distance = kDistance;
  for (std::size_t i = 0; i < block.size(); ++i) {
    if constexpr (std::is_integral_v<Sample>) {
      to[i * distance] = static_cast<Sample>(block[i]);
    } else {
      to[i * distance] = static_cast<Sample>(block[i]) * static_cast<Sample>(share);  // Exact: a power of 2.
    }
  }
}

}  // namespace

std::optional<FlacStream> read_flac_stream(std::span<const std::uint8_t> file) {
  constexpr std::uint32_t kBlockHeaderBytes = 4;
  if (file.size() < kMarker.size() || !std::ranges::equal(file.first(kMarker.size()), kMarker)) return std::nullopt;
  FlacStream stream{};
  std::size_t at = kMarker.size();
  for (bool is_first = true, is_last = false; !is_last; is_first = false) {
    if (file.size() - at < kBlockHeaderBytes) return std::nullopt;
    BitReader reader(file.subspan(at));
    is_last = reader.read(1) != 0;
    const std::uint32_t kind = reader.read(7), length = reader.read(24);
    at += kBlockHeaderBytes;
    if (file.size() - at < length || is_first != (kind == 0)) return std::nullopt;
    if (is_first) {
      if (length != kStreamInfoBytes) return std::nullopt;
      reader.read(16);
      stream.block_most = reader.read(16);
      reader.read(24), reader.read(24);
      stream.rate_hertz = reader.read(20);
      stream.channels = reader.read(3) + 1;
      stream.bits = reader.read(5) + 1;
      const std::uint64_t high = reader.read(4);
      stream.frames = high << 32 | reader.read(32);
    }
    at += length;
  }
  stream.first_frame = at;
  const std::uint64_t most = std::min<std::uint64_t>(kFramesMax, (file.size() - at) / kFrameBytesMin * kBlockMax);
  const bool sound = (stream.bits == 16 || stream.bits == 24) && stream.channels <= kChannelsMax &&
                     stream.rate_hertz > 0 && stream.block_most >= 16 && stream.frames > 0 && stream.frames <= most;
  return sound ? std::optional(stream) : std::nullopt;
}

struct FlacDecoder::Frame {
  unsigned block;
  Stereo stereo;
};

std::optional<FlacDecoder::Frame> FlacDecoder::read_frame(std::span<const std::uint8_t>& file, const FlacStream& stream,
                                                          std::uint64_t position, std::uint64_t number) {
  BitReader reader(file);
  const auto header = read_header(reader, file, stream, position, number);
  if (!header || header->block > stream.frames - position) return std::nullopt;
  for (unsigned channel = 0; channel < stream.channels; ++channel) {
    const bool is_difference = header->stereo == Stereo::kSideRight ? channel == 0
                               : header->stereo != Stereo::kNone    ? channel == 1
                                                                    : false;
    std::int32_t* const samples = samples_.data() + rows_.size() * stride_;
    FlacRow& row = rows_.emplace_back();
    row.length = header->block;
    if (!read_flac_subframe(reader, stream.bits + (is_difference ? 1 : 0), row, samples)) return std::nullopt;
  }
  reader.skip_to_byte();
  if (reader.overran()) return std::nullopt;
  const std::size_t length = reader.position();
  if (reader.read(16) != sum_of_16(file.first(length)) || reader.overran()) return std::nullopt;
  file = file.subspan(reader.position());
  return Frame{header->block, header->stereo};
}

// Frames are taken in groups, so that as many rows as there are lanes are predicted at once.
template <typename Sample>
bool FlacDecoder::decode(std::span<const std::uint8_t> file, const FlacStream& stream, std::span<Sample> samples) {
  if (std::is_integral_v<Sample> && stream.bits != 16) return false;
  stride_ = (stream.block_most + kLanes - 1) / kLanes * kLanes;
  samples_.resize(kLanes * stride_);
  const double share = 1.0 / static_cast<double>(std::uint32_t{1} << (stream.bits - 1));
  file = file.subspan(stream.first_frame);
  Sample* to = samples.data();
  std::uint64_t position = 0;
  for (std::uint64_t number = 0; position < stream.frames;) {
    std::array<Frame, kLanes> frames;
    std::size_t count = 0;
    rows_.clear();
    for (; position < stream.frames && rows_.size() + stream.channels <= kLanes; ++number, ++count) {
      const auto frame = read_frame(file, stream, position, number);
      if (!frame) return false;
      frames[count] = *frame;
      position += frame->block;
    }
    if (!add_flac_predictions(rows_, stride_, Registers::kWidest, samples_.data())) return false;
    std::int32_t* from = samples_.data();
    for (const Frame& frame : std::span(frames).first(count)) {
      if (frame.stereo != Stereo::kNone && !undo_stereo(frame.stereo, stream.bits, from, from + stride_, frame.block)) {
        return false;
      }
      for (unsigned channel = 0; channel < stream.channels; ++channel, from += stride_) {
        const std::span block(from, frame.block);
        // With a distance that is known, the compiler takes several samples at once.
        if (stream.channels == 1) {
          write_samples<1>(block, share, 1, to);
        } else {
          write_samples<0>(block, share, stream.channels, to + channel);
        }
      }
      to += std::size_t{frame.block} * stream.channels;
    }
  }
  return true;
}

template bool FlacDecoder::decode(std::span<const std::uint8_t>, const FlacStream&, std::span<float>);
template bool FlacDecoder::decode(std::span<const std::uint8_t>, const FlacStream&, std::span<double>);
template bool FlacDecoder::decode(std::span<const std::uint8_t>, const FlacStream&, std::span<std::int16_t>);

}  // namespace sluice::pipeline::audio
