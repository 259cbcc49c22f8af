// Undoes the filters of PNG rows (W3C, Portable Network Graphics, section 9), in one version for every machine and one
// for x86 processors. Both give the same bytes.
//
// Thread safety: pure functions, but for what their arguments point to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::pipeline {

enum class PngFilter : std::uint8_t { kNone = 0, kLeft = 1, kAbove = 2, kAverage = 3, kPaeth = 4 };

// Rows may be read (never used, never written) up to this many bytes behind their ends.
inline constexpr std::size_t kPngRowMarginBytes = 8;

// `distance_bytes`: from one pixel to the next, 1, 2, 3, 4, 6 or 8. `above`: the row before, as it was; zeros for the
// first.
// REQUIRES: `above` has the length of `row`, which is a whole number of pixels
void undo_filter_portably(PngFilter filter, std::size_t distance_bytes, const std::uint8_t* above,
                          std::span<std::uint8_t> row);

// The fastest for this machine.
void undo_filter(PngFilter filter, std::size_t distance_bytes, const std::uint8_t* above, std::span<std::uint8_t> row);

}  // namespace sluice::pipeline
