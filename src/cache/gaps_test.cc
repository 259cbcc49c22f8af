#include "src/cache/gaps.h"

#include <map>
#include <random>
#include <set>

#include "src/base/testing/catch.h"
#include "src/cache/disk.h"
#include "src/cache/record.h"

namespace sluice::cache {
namespace {

constexpr std::uint64_t kBlock = kBlockBytes;

TEST_CASE("a gap gives back the blocks behind its head, and one with its neighbour what lies between them") {
  struct Added {
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  struct Case {
    const char* story;
    std::vector<Added> before;
    Added added;
    Gaps::Change want;  // hole_offset counts where there is a hole
  };
  const Case cases[] = {
      {"a record within a block", {}, {100, 200}, {100, 200, 0, 0}},
      {"its head takes the first block", {}, {0, 3 * kBlock}, {0, 3 * kBlock, kBlock, 2 * kBlock}},
      {"the head ends where a block does", {}, {kBlock - 32, kBlock + 32}, {kBlock - 32, kBlock + 32, kBlock, kBlock}},
      {"the last block has another record, too", {}, {10, 2 * kBlock}, {10, 2 * kBlock, kBlock, kBlock}},
      {"behind another one: with the block of its head",
       {{0, 2 * kBlock + 50}},
       {2 * kBlock + 50, kBlock},
       {0, 3 * kBlock + 50, 2 * kBlock, kBlock}},
      {"before another one", {{kBlock + 50, 2 * kBlock}}, {50, kBlock}, {50, 3 * kBlock, kBlock, kBlock}},
      {"between two",
       {{0, kBlock + 50}, {kBlock + 150, 2 * kBlock}},
       {kBlock + 50, 100},
       {0, 3 * kBlock + 150, kBlock, kBlock}},
      {"two small ones have none together", {{0, 100}}, {100, 100}, {0, 200, 0, 0}},
      {"the third one makes a block",
       {{0, 100}, {100, kBlock}},
       {100 + kBlock, kBlock},
       {0, 100 + 2 * kBlock, kBlock, kBlock}},
      {"one that does not touch", {{0, 100}, {300, 100}}, {150, 100}, {150, 100, 0, 0}},
  };
  for (const Case& c : cases) {
    INFO(c.story);
    Gaps gaps;
    for (const Added& gap : c.before) gaps.add(gap.offset, gap.bytes);
    const Gaps::Change change = gaps.add(c.added.offset, c.added.bytes);
    CHECK(change.offset == c.want.offset);
    CHECK(change.bytes == c.want.bytes);
    CHECK(change.hole_bytes == c.want.hole_bytes);
    if (c.want.hole_bytes > 0) CHECK(change.hole_offset == c.want.hole_offset);
  }
}

// The blocks of each gap that lie behind its head. `gone`: where records were, by offset.
std::set<std::uint64_t> blocks_of(const std::map<std::uint64_t, std::uint64_t>& gone) {
  std::set<std::uint64_t> blocks;
  for (auto at = gone.begin(); at != gone.end();) {
    const std::uint64_t begin = at->first + kFixedHeadBytes;
    std::uint64_t end = at->first;
    for (; at != gone.end() && at->first == end; ++at) end += at->second;
    for (std::uint64_t block = (begin + kBlock - 1) / kBlock; (block + 1) * kBlock <= end; ++block)
      blocks.insert(block);
  }
  return blocks;
}

TEST_CASE("records that go in any order give back each block once, and no block with a record or a head") {
  std::mt19937 random(3);
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> records;
    std::uint64_t end = 16;
    for (int i = 0; i < 30; ++i) {
      const std::uint64_t bytes = kFixedHeadBytes + random() % (turn % 2 == 0 ? 3 * kBlock : kBlock / 2);
      records.emplace_back(end, bytes);
      end += bytes;
    }
    std::shuffle(records.begin(), records.end(), random);
    std::map<std::uint64_t, std::uint64_t> gone;
    std::set<std::uint64_t> given_back;
    Gaps gaps;
    for (const auto& [offset, bytes] : records) {
      CHECK(gaps.end_at(offset) == offset);
      const Gaps::Change change = gaps.add(offset, bytes);
      for (std::uint64_t at = 0; at < change.hole_bytes; at += kBlock)
        REQUIRE(given_back.insert((change.hole_offset + at) / kBlock).second);
      gone[offset] = bytes;
      REQUIRE(given_back == blocks_of(gone));
      CHECK(gaps.end_at(offset) >= offset + bytes);
    }
    CHECK(gaps.end_at(16) == end);
    CHECK(gaps.end_at(end) == end);
    CHECK(gaps.end_at(15) == 15);
  }
}

}  // namespace
}  // namespace sluice::cache
