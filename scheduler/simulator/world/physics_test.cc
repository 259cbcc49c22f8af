#include "scheduler/simulator/world/physics.h"

#include <cmath>

#include "scheduler/simulator/world/random.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

TEST_CASE("Progress follows supply while data is short, and saturates where it is plenty") {
  CHECK(progress(0, 6) == 0);
  CHECK(progress(0.1, 6) == Approx(0.1).epsilon(1e-6));
  CHECK(progress(1, 6) == Approx(std::pow(2, -1.0 / 6)));
  CHECK(progress(2, 6) == Approx(0.9974).epsilon(1e-3));
  CHECK(progress(1e9, 6) == 1);
  CHECK(progress(1e-9, 1000) == Approx(1e-9));
}

TEST_CASE("Local cores add up, unless the host is said to saturate") {
  Physics physics;
  CHECK(local_supply_cores(12, physics) == 12);
  physics.local_exponent = 0.8;
  physics.local_flatter_above_cores = 4;
  physics.local_flatter_exponent = 0.5;
  CHECK(local_supply_cores(1, physics) == 1);
  // Pecan's TPU host: 390 images/s with one local worker, 1165 with four, about 1912 with ten.
  CHECK(local_supply_cores(4, physics) == Approx(1165.0 / 390).epsilon(0.05));
  CHECK(local_supply_cores(10, physics) == Approx(1912.0 / 390).epsilon(0.06));
}

TEST_CASE("No number of cores supplies more than itself, nor less than fewer cores do") {
  struct Row {
    double exponent, above, flatter;
  };
  for (const Row& row : {Row{1, 0, 0.5}, Row{0.8, 0, 0.5}, Row{0.8, 4, 0.5}, Row{0.8, 0.5, 0.5}, Row{0.1, 0.2, 0}}) {
    CAPTURE(row.exponent, row.above, row.flatter);
    Physics physics;
    physics.local_exponent = row.exponent;
    physics.local_flatter_above_cores = row.above;
    physics.local_flatter_exponent = row.flatter;
    double before = 0;
    for (const double cores : {0.0, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0, 2.0, 4.0, 64.0}) {
      CHECK(local_supply_cores(cores, physics) <= cores);
      CHECK(local_supply_cores(cores, physics) >= before);
      before = local_supply_cores(cores, physics);
    }
  }
}

TEST_CASE("A sample costs the same at first in every world, then what the seed says") {
  Physics physics;
  CHECK(cost_factor(physics, 1, 0, 5) == 1);
  physics.cost_change = 0.5;
  CHECK(cost_factor(physics, 1, 0, 0) == 1);
  CHECK(cost_factor(physics, 1, 0, 5) == cost_factor(physics, 1, 0, 5));
  CHECK(cost_factor(physics, 1, 0, 5) != cost_factor(physics, 2, 0, 5));
}

TEST_CASE("Draws have the moments of their distributions") {
  double sum = 0, squares = 0, waits = 0, fractions = 0;
  constexpr int kDraws = 20000;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double z = normal({7, Draw::kNoise, 1, i});
    sum += z;
    squares += z * z;
    waits += exponential({7, Draw::kArrival, 1, i});
    fractions += uniform({7, Draw::kModel, 1, i});
  }
  CHECK(sum / kDraws == Approx(0).margin(0.03));
  CHECK(squares / kDraws == Approx(1).epsilon(0.03));
  CHECK(waits / kDraws == Approx(1).epsilon(0.03));
  CHECK(fractions / kDraws == Approx(0.5).epsilon(0.02));
}

}  // namespace
}  // namespace sluice::simulator
