#include "src/cache/rewrite_plan.h"

#include <random>

#include "src/base/testing/catch.h"
#include "src/cache/testing/simulated_segments.h"

namespace sluice::cache {
namespace {

using Numbers = std::vector<std::uint32_t>;

TEST_CASE("the segments with the least live share are rewritten, as many as are needed") {
  struct Case {
    const char* story;
    std::vector<ClosedSegment> segments;
    RewriteLimits limits;
    Numbers want;
    std::uint64_t copied;
    std::uint64_t freed;
  };
  const std::vector<ClosedSegment> three{{1, 100, 70}, {2, 100, 20}, {3, 100, 0}};
  for (const Case& c : {
           Case{"nothing is wanted", three, {.wanted_bytes = 0, .room_bytes = 100}, {}, 0, 0},
           Case{"one without live records suffices", three, {.wanted_bytes = 90, .room_bytes = 0}, {3}, 0, 100},
           Case{"... and makes room for the copy of another one",
                three,
                {.wanted_bytes = 180, .room_bytes = 0},
                {3, 2},
                20,
                180},
           Case{"all three", three, {.wanted_bytes = 201, .room_bytes = 0}, {3, 2, 1}, 90, 210},
           Case{"more than there is", three, {.wanted_bytes = 900, .room_bytes = 0}, {3, 2, 1}, 90, 210},
           Case{"one that has too much live stays",
                three,
                {.wanted_bytes = 900, .room_bytes = 0, .live_share_max = 0.6},
                {3, 2},
                20,
                180},
           Case{"so many at a time", three, {.wanted_bytes = 900, .room_bytes = 0, .segments_max = 1}, {3}, 0, 100},
           Case{"no room for any copy", {{1, 100, 50}}, {.wanted_bytes = 10, .room_bytes = 49}, {}, 0, 0},
           Case{"room for the copy of a dearer one only",
                {{1, 1000, 60}, {2, 100, 50}},
                {.wanted_bytes = 10, .room_bytes = 50},
                {2},
                50,
                50},
           Case{"the last one makes the one before needless",
                {{1, 100, 20}, {2, 1000, 300}},
                {.wanted_bytes = 100, .room_bytes = 300},
                {2},
                300,
                700},
           Case{"... unless that makes the room for it",
                {{1, 100, 20}, {2, 1000, 300}},
                {.wanted_bytes = 100, .room_bytes = 220},
                {1, 2},
                320,
                780},
           Case{"of equal ones the oldest",
                {{9, 100, 50}, {4, 100, 50}},
                {.wanted_bytes = 1, .room_bytes = 50},
                {4},
                50,
                50},
           Case{"whole segments give nothing back",
                {{1, 100, 100}},
                {.wanted_bytes = 1, .room_bytes = 500, .live_share_max = 1},
                {},
                0,
                0},
       }) {
    INFO(c.story);
    const RewritePlan plan = plan_rewriting(c.segments, c.limits);
    CHECK(plan.segments == c.want);
    CHECK(plan.copied_bytes == c.copied);
    CHECK(plan.freed_bytes == c.freed);
  }
}

TEST_CASE("a plan copies at most one segment more than the best choice, and keeps its limits") {
  std::mt19937 random(4);
  for (int i = 0; i < 2000; ++i) {
    std::vector<ClosedSegment> segments(1 + random() % 8);
    std::uint64_t live_most = 0;
    for (std::uint32_t number = 0; number < segments.size(); ++number) {
      segments[number] = {number, 50 + random() % 100, 0};
      segments[number].live_bytes = random() % (segments[number].bytes + 1);
      live_most = std::max(live_most, segments[number].live_bytes);
    }
    const RewriteLimits limits{.wanted_bytes = 1 + random() % 300, .room_bytes = 1000, .live_share_max = 0.8};
    std::uint64_t best = UINT64_MAX;
    for (std::uint32_t choice = 0; choice < (1U << segments.size()); ++choice) {
      std::uint64_t copied = 0;
      std::uint64_t freed = 0;
      for (const ClosedSegment& segment : segments) {
        const bool is_legal = static_cast<double>(segment.live_bytes) <= 0.8 * static_cast<double>(segment.bytes);
        if ((choice >> segment.number & 1) == 0 || !is_legal) continue;
        copied += segment.live_bytes;
        freed += segment.bytes - segment.live_bytes;
      }
      if (freed >= limits.wanted_bytes) best = std::min(best, copied);
    }
    const RewritePlan plan = plan_rewriting(segments, limits);
    INFO("case " << i);
    CHECK((plan.freed_bytes >= limits.wanted_bytes) == (best != UINT64_MAX));
    if (best != UINT64_MAX) CHECK(plan.copied_bytes <= best + live_most);
    CHECK(static_cast<double>(plan.copied_bytes) <= 4.001 * static_cast<double>(plan.freed_bytes));
  }
}

TEST_CASE("however records die, there is always one to rewrite, within the bounds on bytes and on what is written") {
  enum class Dies { kAny, kOldest, kNewest, kOneInTwo };
  const auto dies = GENERATE(Dies::kAny, Dies::kOldest, Dies::kNewest, Dies::kOneInTwo);
  const double share = GENERATE(0.3, 0.5, 0.8, 0.95);
  constexpr std::uint64_t kBound = 40000;
  constexpr std::uint64_t kSegment = 1000;
  const std::uint64_t capacity = live_bytes_max(kBound, kSegment, share);
  testing::SimulatedSegments segments(kBound, kSegment, share);
  std::mt19937 random(6);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> live;
  std::uint64_t live_bytes = 0;
  for (std::uint32_t record = 0; record < 10000; ++record) {
    const std::uint32_t bytes = 1 + random() % 100;
    while (live_bytes + bytes > capacity) {
      std::size_t which = random() % live.size();
      if (dies == Dies::kOldest) which = 0;
      if (dies == Dies::kNewest) which = live.size() - 1;
      if (dies == Dies::kOneInTwo) which = std::min(live.size() - 1, which * 2);
      live_bytes -= live[which].second;
      segments.drop(live[which].first);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    }
    segments.add(record, bytes);
    live.emplace_back(record, bytes);
    live_bytes += bytes;
  }
  INFO("deaths " << static_cast<int>(dies) << ", share " << share);
  CHECK(segments.failed_plans() == 0);
  CHECK(segments.disk_bytes_most() <= kBound);
  CHECK(static_cast<double>(segments.written_bytes()) <=
        write_amplification_max(share) * static_cast<double>(segments.stored_bytes()));
  if (dies == Dies::kOldest) CHECK(segments.written_bytes() <= 1.1 * static_cast<double>(segments.stored_bytes()));
}

}  // namespace
}  // namespace sluice::cache
