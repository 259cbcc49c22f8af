#include "src/pipeline/testing/flac_encoder.h"

#include <algorithm>
#include <cstddef>

namespace sluice::pipeline::testing {
namespace {

constexpr unsigned kWeightBits = 15;
constexpr unsigned kEscapedBits = 20;

class BitWriter {
 public:
  void put(std::uint64_t value, unsigned count) {
    for (unsigned i = count; i > 0; --i) {
      if (bits_++ % 8 == 0) bytes.push_back(0);
      bytes.back() |= static_cast<std::uint8_t>((value >> (i - 1) & 1) << ((8 - bits_ % 8) % 8));
    }
  }
  void fill_byte() { bits_ = bytes.size() * 8; }

  std::vector<std::uint8_t> bytes;

 private:
  std::size_t bits_ = 0;
};

// Bit by bit, as the polynomials are defined.
unsigned checksum(const std::uint8_t* bytes, std::size_t count, unsigned width, unsigned polynomial) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < count * 8; ++i) {
    const unsigned top = (sum >> (width - 1) & 1) ^ (bytes[i / 8] >> (7 - i % 8) & 1U);
    sum = (sum << 1 & ((1U << width) - 1)) ^ (top != 0 ? polynomial : 0);
  }
  return sum;
}

std::vector<std::int32_t> weights_of(const FlacSubframe& how) {
  static const std::vector<std::vector<std::int32_t>> kFixed{{}, {1}, {2, -1}, {3, -3, 1}, {4, -6, 4, -1}};
  return how.kind == FlacSubframe::Kind::kFixed ? kFixed[how.order] : how.weights;
}

void put_residual(BitWriter& to, const FlacSubframe& how, const std::vector<std::int64_t>& residual,
                  std::size_t order) {
  to.put(how.wide_parameters ? 1 : 0, 2);
  to.put(how.partition_order, 4);
  const unsigned parameter_bits = how.wide_parameters ? 5 : 4;
  const std::size_t length = std::max<std::size_t>(1, residual.size() >> how.partition_order);
  for (std::size_t at = 0; at < residual.size(); ++at) {
    if (at % length == 0) to.put(how.escaped ? (1U << parameter_bits) - 1 : how.parameter, parameter_bits);
    if (at % length == 0 && how.escaped) to.put(kEscapedBits, 5);
    if (at < order) continue;
    if (how.escaped) {
      to.put(static_cast<std::uint64_t>(residual[at]), kEscapedBits);
      continue;
    }
    const std::uint64_t code = static_cast<std::uint64_t>(residual[at] << 1 ^ residual[at] >> 63);
    for (std::uint64_t i = 0; i < code >> how.parameter; ++i) to.put(0, 1);
    to.put(1, 1);
    to.put(code, how.parameter);
  }
}

void put_subframe(BitWriter& to, const FlacSubframe& how, unsigned bits, std::vector<std::int32_t> samples) {
  using Kind = FlacSubframe::Kind;
  const std::vector<std::int32_t> weights = weights_of(how);
  const auto order = static_cast<unsigned>(weights.size());
  const bool predicts = how.kind == Kind::kFixed || how.kind == Kind::kLinear;
  to.put(0, 1);
  to.put(how.kind == Kind::kConstant   ? 0
         : how.kind == Kind::kVerbatim ? 1
         : how.kind == Kind::kFixed    ? 8 + order
                                       : 31 + order,
         6);
  to.put(how.wasted_bits > 0 ? 1 : 0, 1);
  if (how.wasted_bits > 0) to.put(1, how.wasted_bits);
  bits -= how.wasted_bits;
  for (std::int32_t& sample : samples) sample >>= how.wasted_bits;
  const std::size_t plain = how.kind == Kind::kConstant ? 1 : predicts ? order : samples.size();
  for (std::size_t i = 0; i < plain; ++i) to.put(static_cast<std::uint64_t>(std::int64_t{samples[i]}), bits);
  if (!predicts) return;
  if (how.kind == Kind::kLinear) {
    to.put(kWeightBits - 1, 4);
    to.put(how.shift, 5);
    for (const std::int32_t weight : weights) to.put(static_cast<std::uint64_t>(std::int64_t{weight}), kWeightBits);
  }
  std::vector<std::int64_t> residual(samples.size());
  for (std::size_t i = order; i < samples.size(); ++i) {
    std::int64_t sum = 0;
    for (std::size_t j = 0; j < order; ++j) sum += std::int64_t{weights[j]} * samples[i - 1 - j];
    residual[i] = samples[i] - (sum >> (how.kind == Kind::kLinear ? how.shift : 0));
  }
  put_residual(to, how, residual, order);
}

std::vector<std::uint8_t> frame_bytes(unsigned bits, unsigned number, const FlacFrame& frame) {
  BitWriter to;
  to.put(0x3ffe, 14);
  to.put(0, 2);
  to.put(7, 4);  // The block's size stands behind the number.
  to.put(0, 4);
  to.put(frame.channel_code, 4);
  to.put(0, 4);
  to.put(number, 8);
  to.put(frame.channels[0].size() - 1, 16);
  to.put(checksum(to.bytes.data(), to.bytes.size(), 8, 0x07), 8);
  for (std::size_t channel = 0; channel < frame.channels.size(); ++channel) {
    const bool is_difference = frame.channel_code >= 8 && channel == (frame.channel_code == 9 ? 0U : 1U);
    put_subframe(to, frame.how, bits + (is_difference ? 1 : 0), frame.channels[channel]);
  }
  to.fill_byte();
  to.put(flac_checksum(to.bytes.data(), to.bytes.size()), 16);
  return to.bytes;
}

}  // namespace

std::uint16_t flac_checksum(const std::uint8_t* bytes, std::size_t count) {
  return static_cast<std::uint16_t>(checksum(bytes, count, 16, 0x8005));
}

std::vector<std::uint8_t> encode_flac(unsigned bits, unsigned channels, const std::vector<FlacFrame>& frames) {
  BitWriter to;
  std::size_t samples = 0;
  for (const FlacFrame& frame : frames) samples += frame.channels[0].size();
  to.put(0x664c6143, 32);  // fLaC
  to.put(0x80000022, 32);  // the last block of metadata: the stream's, of 34 bytes
  to.put(std::max<std::size_t>(16, frames[0].channels[0].size()), 16);
  to.put(std::max<std::size_t>(16, frames[0].channels[0].size()), 16);
  to.put(0, 48);
  to.put(16000, 20);
  to.put(channels - 1, 3);
  to.put(bits - 1, 5);
  to.put(samples, 36);
  to.put(0, 64), to.put(0, 64);
  for (unsigned number = 0; number < frames.size(); ++number) {
    const std::vector<std::uint8_t> bytes = frame_bytes(bits, number, frames[number]);
    to.bytes.insert(to.bytes.end(), bytes.begin(), bytes.end());
  }
  return to.bytes;
}

}  // namespace sluice::pipeline::testing
