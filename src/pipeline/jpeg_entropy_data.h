// The entropy-coded data of a JPEG scan, without the zero that follows each 0xFF of it, one segment between markers at
// a time: so the bits of a segment lie one behind the other.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::pipeline {

inline constexpr std::uint8_t kEndOfImageMarker = 0xD9;

// Whether the marker of the image's end is in entropy-coded data and what follows them: 0xFF is followed by a zero or a
// restart marker there. At once if the file is whole.
bool has_end_of_image(std::span<const std::uint8_t> data);

class EntropyData {
 public:
  // Readable bytes, zeros, behind a segment: more than a block and a machine word.
  static constexpr std::size_t kPaddingBytes = 256;

  // REQUIRES: `scan` stays valid; it begins behind the scan's header.
  void start(std::span<const std::uint8_t> scan);

  // Goes to the next segment. False if the data end before a marker does.
  bool next_segment();

  std::span<const std::uint8_t> segment() const { return {bytes_.data(), segment_bytes_}; }
  // The marker behind the segment: the byte after 0xFF.
  std::uint8_t marker() const { return marker_; }
  // What follows that marker.
  std::span<const std::uint8_t> rest() const { return rest_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t segment_bytes_ = 0;
  std::uint8_t marker_ = 0;
  std::span<const std::uint8_t> rest_;
};

}  // namespace sluice::pipeline
