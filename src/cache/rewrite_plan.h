// Which segments to write anew, without the records that were evicted, so that their room comes back.
//
// Records are only appended (segment_store.h), so what is evicted stays on the disk until its whole segment goes. A
// segment is reclaimed by copying its live records to the one that is being written, and removing it. Of the closed
// segments those come first that copy least for each byte that comes back, which are those with the least live share;
// none is rewritten whose live share is above a limit u. So
//   a copy of c bytes gives back at least c * (1 - u) / u, and however records die the disk is written at most
//   1 / (1 - u) times what is stored: write_amplification_max();
//   as long as the live bytes are at most u times the closed ones, some segment is at or below u, as no mean is below
//   its least part. So a cache that keeps its live bytes within live_bytes_max() always finds room by rewriting.
// Where evicted records leave holes (gaps.h), most of their room has come back already, and the shares are those of
// what is still on the disk. What is left of old segments are ends of blocks. A segment of which half is dead is worth
// its copy for less, kFreedShareLeast: one byte at most is copied then for one that was stored. A copy is written
// before its segment goes, within the bound on bytes: `room_bytes`, which grows as segments go.
//
// Thread safety: pure functions and values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::cache {

// A segment that is not written to.
struct ClosedSegment {
  std::uint32_t number = 0;
  std::uint64_t bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t hole_bytes = 0;
};

inline constexpr double kFreedShareLeast = 1.0 / 16;  // of what is copied

struct RewriteLimits {
  std::uint64_t wanted_bytes = 0;  // that should come back
  std::uint64_t room_bytes = 0;    // that copies may take before the first segment has gone
  double live_share_max = 0.8;     // u, in [0, 1)
  std::size_t segments_max = 16;   // in one plan: rewriting keeps the disk busy
};

// In the order in which they are to be rewritten.
struct RewritePlan {
  std::vector<std::uint32_t> segments;
  std::uint64_t copied_bytes = 0;
  std::uint64_t freed_bytes = 0;  // less what is copied
};

// May free less than is wanted: what the limits allow. Equal segments go oldest first.
RewritePlan plan_rewriting(std::span<const ClosedSegment> segments, const RewriteLimits& limits);

constexpr double write_amplification_max(double live_share_max) { return 1 / (1 - live_share_max); }

// Of a disk with this bound, of which one segment is being written, room for another one is left to copies, and a
// third one is lost where records do not fill segments to their ends.
constexpr std::uint64_t live_bytes_max(std::uint64_t bound_bytes, std::uint64_t segment_bytes, double live_share_max) {
  if (bound_bytes <= 3 * segment_bytes) return 0;
  return static_cast<std::uint64_t>(live_share_max * static_cast<double>(bound_bytes - 3 * segment_bytes));
}

}  // namespace sluice::cache
