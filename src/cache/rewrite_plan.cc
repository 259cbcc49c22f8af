#include "src/cache/rewrite_plan.h"

#include <algorithm>

namespace sluice::cache {
namespace {

double share(std::uint64_t bytes, std::uint64_t of_bytes) {
  return static_cast<double>(bytes) / static_cast<double>(of_bytes);
}

std::uint64_t bytes_on_disk(const ClosedSegment& segment) { return segment.bytes - segment.hole_bytes; }
std::uint64_t freed_bytes(const ClosedSegment& segment) {
  return bytes_on_disk(segment) - std::min(bytes_on_disk(segment), segment.live_bytes);
}

bool may_be_rewritten(const ClosedSegment& segment, double live_share_max) {
  const std::uint64_t freed = freed_bytes(segment);
  if (freed == 0) return false;
  if (share(segment.live_bytes, bytes_on_disk(segment)) <= live_share_max) return true;
  return share(segment.live_bytes, segment.bytes) <= 0.5 &&
         static_cast<double>(freed) >= kFreedShareLeast * static_cast<double>(segment.live_bytes);
}

bool comes_before(const ClosedSegment& a, const ClosedSegment& b) {
  const double a_share = share(a.live_bytes, bytes_on_disk(a));
  const double b_share = share(b.live_bytes, bytes_on_disk(b));
  return a_share != b_share ? a_share < b_share : a.number < b.number;
}

}  // namespace

RewritePlan plan_rewriting(std::span<const ClosedSegment> segments, const RewriteLimits& limits) {
  // 1. Those that may be rewritten, the cheapest for each byte first.
  std::vector<ClosedSegment> candidates;
  for (const ClosedSegment& segment : segments) {
    if (may_be_rewritten(segment, limits.live_share_max)) candidates.push_back(segment);
  }
  std::sort(candidates.begin(), candidates.end(), comes_before);
  // 2. As many as are needed, each if there is room for its copy when its turn comes.
  std::vector<ClosedSegment> chosen;
  std::uint64_t freed = 0;
  for (const ClosedSegment& segment : candidates) {
    if (freed >= limits.wanted_bytes || chosen.size() >= limits.segments_max) break;
    if (segment.live_bytes > limits.room_bytes + freed) continue;
    chosen.push_back(segment);
    freed += freed_bytes(segment);
  }
  // 3. The last one may have made others needless, unless they made the room for a copy: those without which all is
  // still freed, the dearest first.
  for (std::size_t i = chosen.size(); i-- > 0;) {
    const bool suffices = freed - freed_bytes(chosen[i]) >= limits.wanted_bytes;
    if (!suffices || chosen[i].live_bytes == 0) continue;
    std::uint64_t room = limits.room_bytes;
    bool others_fit = true;
    for (std::size_t other = 0; other < chosen.size(); ++other) {
      if (other == i) continue;
      others_fit = others_fit && chosen[other].live_bytes <= room;
      room += freed_bytes(chosen[other]);
    }
    if (!others_fit) continue;
    freed -= freed_bytes(chosen[i]);
    chosen.erase(chosen.begin() + static_cast<std::ptrdiff_t>(i));
  }
  RewritePlan plan{.freed_bytes = freed};
  for (const ClosedSegment& segment : chosen) {
    plan.segments.push_back(segment.number);
    plan.copied_bytes += segment.live_bytes;
  }
  return plan;
}

}  // namespace sluice::cache
