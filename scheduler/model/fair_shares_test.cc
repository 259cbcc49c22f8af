#include "scheduler/model/fair_shares.h"

#include <algorithm>
#include <cstdint>

#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

TEST_CASE("Shares are fair in the sense of max-min") {
  CHECK(fair_shares({1, 10, 10}, 9) == std::vector<double>{1, 4, 4});
  CHECK(fair_shares({1, 2}, 9) == std::vector<double>{1, 2});
  CHECK(fair_shares({}, 9).empty());
}

TEST_CASE("Shares exceed neither the capacity nor a need, and leave nothing over that a job needs") {
  std::uint64_t state = 7;
  const auto next = [&state] { return static_cast<double>((state = state * 6364136223846793005U + 1) >> 40) / 1e6; };
  for (int round = 0; round < 200; ++round) {
    std::vector<double> needs(1 + round % 9);
    for (double& need : needs) need = next();
    const double capacity = 2 * next();
    const auto shares = fair_shares(needs, capacity);
    double given = 0, wanted = 0;
    for (std::size_t i = 0; i < needs.size(); ++i) {
      CHECK(shares[i] <= needs[i] + 1e-9);
      given += shares[i];
      wanted += needs[i];
    }
    CHECK(given == Approx(std::min(wanted, capacity)));
  }
}

}  // namespace
}  // namespace sluice::scheduler::testing
