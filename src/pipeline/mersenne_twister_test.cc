#include "src/pipeline/mersenne_twister.h"

#include <random>

#include "src/base/testing/catch.h"

namespace sluice::pipeline {
namespace {

TEST_CASE("the numbers are the standard library's, for any seed and through several turns of the state") {
  std::mt19937 seeds(5);
  for (const std::uint32_t seed :
       {0U, 1U, 5489U, 0xFFFFFFFFU, static_cast<std::uint32_t>(seeds()), static_cast<std::uint32_t>(seeds())}) {
    std::mt19937 want(seed);
    MersenneTwister made(seed);
    for (int number = 0; number < 5 * 624 + 7; ++number) {
      CAPTURE(seed, number);
      REQUIRE(made() == want());
    }
  }
}

TEST_CASE("the ten-thousandth number of the default seed is the standard's") {
  MersenneTwister made(5489);
  for (int number = 1; number < 10'000; ++number) made();
  CHECK(made() == 4123659995U);
}

}  // namespace
}  // namespace sluice::pipeline
