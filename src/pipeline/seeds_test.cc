#include "src/pipeline/seeds.h"

#include <limits>
#include <set>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

// Computed with the formula of docs/designs/protocols.md in Python's unbounded integers.
static_assert(sample_seed(0, 0, 0) == 0x7B1DCDAF);

TEST_CASE("sample seeds are the contract's formula, also where it wraps around") {
  CHECK(sample_seed(std::numeric_limits<std::uint64_t>::max(), 3, 7) == 0x9B5282A9);
  CHECK(sample_seed(1234567, 1ULL << 23, (1ULL << 39) + 5) == 0xDDAF02BA);
  CHECK(sample_seed(42, 1, (1ULL << 40) - 1) == 0xE8849CB3);
}

TEST_CASE("neighbouring positions, epochs and base seeds have unrelated seeds") {
  std::set<std::uint32_t> seeds;
  for (std::uint64_t base = 0; base < 10; ++base) {
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
      for (std::uint64_t position = 0; position < 10; ++position) seeds.insert(sample_seed(base, epoch, position));
    }
  }
  CHECK(seeds.size() == 1000);
}

}  // namespace
}  // namespace sluice::pipeline
