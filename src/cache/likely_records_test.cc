#include "src/cache/likely_records.h"

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

Key key_of(int i, int version = 1) { return {"place " + std::to_string(i), "version " + std::to_string(version)}; }

TEST_CASE("what was found or kept is likely to be there, and what was missed is not") {
  LikelyRecords records;
  CHECK_FALSE(records.has(key_of(1)));
  records.note(key_of(1), true);
  records.note_kept(key_of(2));
  CHECK(records.has(key_of(1)));
  CHECK(records.has(key_of(2)));
  CHECK_FALSE(records.has(key_of(1, 2)));
  records.note(key_of(1), false);
  CHECK_FALSE(records.has(key_of(1)));
}

TEST_CASE("while nearly all is found, so will be what was not asked for yet") {
  LikelyRecords records;
  for (int i = 0; i < 600; ++i) records.note(key_of(i), true);
  CHECK(records.has(key_of(10'000)));
  for (int i = 0; i < 10; ++i) records.note(key_of(20'000 + i), false);
  CHECK_FALSE(records.has(key_of(10'000)));
  CHECK(records.has(key_of(0)));
}

}  // namespace
}  // namespace sluice::cache
