#include "src/pipeline/jpeg_entropy_data.h"

#include <cstring>

namespace sluice::pipeline {
namespace {

constexpr std::uint8_t kMarkerStart = 0xFF;
constexpr std::size_t kWordBytes = 8;

// Whether one of the eight bytes is 0xFF.
bool has_marker_start(std::uint64_t word) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  return ((~word - kOnes) & word & (kOnes << 7U)) != 0;
}

}  // namespace

bool has_end_of_image(std::span<const std::uint8_t> data) {
  for (std::size_t i = data.size(); i >= 2; --i) {
    if (data[i - 1] == kEndOfImageMarker && data[i - 2] == kMarkerStart) return true;
  }
  return false;
}

void EntropyData::start(std::span<const std::uint8_t> scan) {
  rest_ = scan;
  segment_bytes_ = 0;
  const std::size_t needed = scan.size() + kPaddingBytes;
  if (bytes_.size() < needed) bytes_.resize(needed);
}

bool EntropyData::next_segment() {
  const std::uint8_t* source = rest_.data();
  const std::uint8_t* const end = source + rest_.size();
  std::uint8_t* target = bytes_.data();
  for (;;) {
    std::uint64_t word = 0;
    while (static_cast<std::size_t>(end - source) >= kWordBytes) {
      std::memcpy(&word, source, kWordBytes);
      if (has_marker_start(word)) break;
      std::memcpy(target, &word, kWordBytes);
      source += kWordBytes;
      target += kWordBytes;
    }
    while (source != end && *source != kMarkerStart) *target++ = *source++;
    if (end - source < 2) return false;
    const std::uint8_t following = source[1];
    source += 2;
    if (following == 0) {
      *target++ = kMarkerStart;
      continue;
    }
    marker_ = following;
    segment_bytes_ = static_cast<std::size_t>(target - bytes_.data());
    std::memset(target, 0, kPaddingBytes);
    rest_ = {source, end};
    return true;
  }
}

}  // namespace sluice::pipeline
