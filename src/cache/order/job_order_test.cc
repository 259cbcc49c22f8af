#include "src/cache/order/job_order.h"

#include <limits>
#include <numeric>
#include <random>

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
using Order = std::vector<std::uint32_t>;

void check_distances(const JobOrder& job, const std::vector<double>& want, bool looks_ahead = true) {
  for (std::uint32_t sample = 0; sample < want.size(); ++sample) {
    INFO("sample " << sample);
    CHECK(job.distance_to(sample, looks_ahead) == want[sample]);
  }
}

TEST_CASE("what is known of the next use of each of four samples") {
  struct Case {
    const char* story;
    Order announced;
    Order next_epoch;
    Order used;
    std::vector<double> want;
  };
  for (const Case& c : {
           Case{"nothing is announced and nothing used", {}, {}, {}, {2, 2, 2, 2}},
           Case{"what was used comes in the next epoch, the others in what is left of this one",
                {},
                {},
                {2, 0},
                {4, 1, 4, 1}},
           Case{"an announced order", {3, 1, 0, 2}, {}, {}, {2, 1, 3, 0}},
           Case{"... of which two are used", {3, 1, 0, 2}, {}, {3, 1}, {0, 4, 1, 4}},
           Case{"... and one has overtaken another", {3, 1, 0, 2}, {}, {3, 0}, {4, 0, 1, 4}},
           Case{"the next epoch is announced, too", {3, 1, 0, 2}, {2, 1, 3, 0}, {3, 1}, {0, 3, 1, 4}},
           Case{"a part of the samples", {2, 0}, {}, {2}, {0, kNever, 2, kNever}},
           Case{"another part in the next epoch", {2, 0}, {1, 2}, {2}, {0, 1 + 0, 1 + 1, kNever}},
           Case{"... without one of this epoch", {2, 0}, {1, 3}, {2}, {0, 1 + 0, 1 + 2 + 1, 1 + 1}},
           Case{"a sampler with replacement uses samples twice", {1, 3, 1, 1}, {}, {1}, {kNever, 1, kNever, 0}},
           Case{"... and once more", {1, 3, 1, 1}, {}, {1, 3, 1}, {kNever, 0, kNever, 3}},
           Case{"an epoch is through", {3, 1, 0, 2}, {}, {3, 1, 0, 2}, {2, 2, 2, 2}},
           Case{"the next one begins by itself", {3, 1, 0, 2}, {2, 1, 3, 0}, {3, 1, 0, 2, 2}, {2, 0, 5, 1}},
           Case{"or in an unknown order, of the samples of the last one",
                {2, 0},
                {},
                {2, 0, 0},
                {2, kNever, 0.5, kNever}},
           Case{"samples that were not announced are used", {2, 0}, {}, {1, 3}, {0, 1, 0, 1}},
       }) {
    INFO(c.story);
    JobOrder job(4, 4, Order{0, 1, 2, 3});
    if (!c.announced.empty()) REQUIRE(job.begin_epoch(c.announced).ok());
    if (!c.next_epoch.empty()) REQUIRE(job.announce_next_epoch(c.next_epoch).ok());
    for (const std::uint32_t sample : c.used) job.use(sample);
    check_distances(job, c.want);
  }
}

TEST_CASE("where in the next epoch a sample comes does not count where no job looks ahead") {
  JobOrder job(3, 0);
  REQUIRE(job.begin_epoch(Order{0, 1}).ok());
  REQUIRE(job.announce_next_epoch(Order{1, 0, 2}).ok());
  job.use(0);
  check_distances(job, {2, 0, 2}, false);
  check_distances(job, {2, 0, 3}, true);
}

TEST_CASE("a job that goes on in mid-epoch has made the uses before") {
  JobOrder job(4, 0);
  REQUIRE(job.begin_epoch(Order{3, 1, 0, 2}, 3).ok());
  check_distances(job, {3, 3, 0, 3});
}

TEST_CASE("a job that claims to be at the end, and is not, counts as one in an unknown order") {
  JobOrder job(4, 0);
  REQUIRE(job.begin_epoch(Order{3, 1, 0, 2}, 77).ok());
  check_distances(job, {2, 2, 2, 2});
  job.use(3);
  check_distances(job, {1.5, 1.5, 1.5, 5});
  job.use(1);
  check_distances(job, {1, 4, 1, 4});
}

TEST_CASE("a job that announces nothing is known by its last epoch") {
  JobOrder job(3, 2);
  for (const std::uint32_t sample : {0U, 2U, 2U}) job.use(sample);
  check_distances(job, {0.5, kNever, 2});
}

Order ascending(std::uint32_t count) {
  Order order(count);
  std::iota(order.begin(), order.end(), 0U);
  return order;
}

TEST_CASE(
    "a job that says nothing may use anything in its first epoch, after what it has used, and nothing else later") {
  JobOrder job(100, 3);
  for (const std::uint32_t sample : {5U, 9U}) job.use(sample);
  CHECK(job.distance_to(5, false) == 1 + 1.5);
  CHECK(job.distance_to(6, false) == 1 + 1.5);
  CHECK(job.knows(5));
  CHECK_FALSE(job.knows(6));
  for (const std::uint32_t sample : {8U, 5U}) job.use(sample);
  CHECK(job.distance_to(9, false) == 1);
  CHECK(job.distance_to(6, false) == kNever);
}

TEST_CASE("the length of epochs is learnt where samples come again, also from the middle of one") {
  constexpr std::uint32_t kSamples = 2000;
  const std::uint32_t first_uses = GENERATE(2000U, 700U, 1U);
  const bool is_in_disorder = GENERATE(false, true);
  INFO("begins with the last " << first_uses << ", in disorder " << is_in_disorder);
  std::mt19937 random(2);
  Order uses;
  for (int epoch = 0; epoch < 6; ++epoch) {
    Order order = ascending(kSamples);
    for (std::uint32_t i = kSamples; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    uses.insert(uses.end(), epoch == 0 ? order.end() - first_uses : order.begin(), order.end());
  }
  // Requests overtake each other by up to 50.
  for (std::size_t i = 50; is_in_disorder && i < uses.size(); i += 50)
    std::swap(uses[i - 1 - random() % 25], uses[i + random() % 25]);
  JobOrder job(1 << 15, 0);
  for (std::size_t i = 0; i + 500 < uses.size(); ++i) job.use(uses[i]);
  CHECK(job.epochs() == (first_uses == 1 ? 4 : 5));
  // 500 are left of an epoch.
  CHECK(job.distance_to(uses[uses.size() - 600], false) == Approx(500 + 1000).margin(130));
  CHECK(job.distance_to(uses[uses.size() - 400], false) == Approx(250).margin(70));
}

TEST_CASE("what comes early belongs to the next epoch, which begins when that is too much") {
  JobOrder job(200, 0);
  REQUIRE(job.begin_epoch(ascending(200)).ok());
  for (std::uint32_t sample = 0; sample < 150; ++sample) job.use(sample);
  SECTION("with its list") {
    REQUIRE(job.announce_next_epoch(ascending(200)).ok());
    for (std::uint32_t sample = 0; sample < JobOrder::kEarlyLeast + 1; ++sample) job.use(sample);
    CHECK(job.epochs() == 1);
    job.use(65);
    CHECK(job.epochs() == 2);
    CHECK(job.distance_to(0, false) == 134 + 100);
    CHECK(job.distance_to(66, false) == 0);
    CHECK(job.distance_to(199, false) == 133);
  }
  SECTION("which is forgotten with an announcement") {
    for (std::uint32_t sample = 0; sample < 60; ++sample) job.use(sample);
    REQUIRE(job.begin_epoch(ascending(200)).ok());
    for (std::uint32_t sample = 0; sample < 20; ++sample) job.use(sample);
    for (std::uint32_t sample = 0; sample < 20; ++sample) job.use(sample);
    CHECK(job.epochs() == 2);
  }
}

TEST_CASE("in a long epoch more may come early") {
  JobOrder job(20000, 0);
  for (std::uint32_t sample = 0; sample < 16000; ++sample) job.use(sample);
  for (std::uint32_t sample = 0; sample < 1000; ++sample) job.use(sample);
  CHECK(job.epochs() == 0);
  for (std::uint32_t sample = 1000; sample < 1002; ++sample) job.use(sample);
  CHECK(job.epochs() == 1);
  CHECK(job.distance_to(0, false) == 16000 - 1002 + 8000);
}

TEST_CASE("an epoch that is longer than the one before becomes as long as it is") {
  JobOrder job(1000, 0);
  for (std::uint32_t sample = 0; sample < 100; ++sample) job.use(sample);
  for (std::uint32_t sample = 0; sample < 66; ++sample) job.use(sample);
  for (std::uint32_t sample = 100; sample < 300; ++sample) job.use(sample);
  CHECK(job.distance_to(0, false) == 133);
}

TEST_CASE("what was listed twice and left out has no place in the list later") {
  JobOrder job(4, 0);
  REQUIRE(job.begin_epoch(Order{1, 3, 1, 1}).ok());
  for (const std::uint32_t sample : {0U, 2U, 3U, 1U, 1U}) job.use(sample);
  CHECK(job.distance_to(1, false) == 3 + 2);
}

TEST_CASE("a sample that a job leaves out is expected for some epochs more") {
  JobOrder job(4, 2, Order{0, 1, 2});
  const auto epoch = [&] {
    job.use(0);
    job.use(1);
  };
  epoch();
  for (std::uint32_t missed = 1; missed < JobOrder::kMissedEpochsMost; ++missed) {
    epoch();
    INFO("missed " << missed);
    CHECK(job.distance_to(2, false) == 0 + 1);
  }
  epoch();
  CHECK(job.distance_to(2, false) == kNever);
}

TEST_CASE("epochs of one use cost no pass over all samples") {
  JobOrder job(1 << 20, 1);
  for (std::uint32_t i = 0; i < 100000; ++i) job.use(i % 3);
  CHECK(job.epochs() == 99999);
  CHECK(job.distance_to(0, false) == 0.5);  // it was used last, and its epoch is through
}

TEST_CASE("a list that cannot be is refused and changes nothing") {
  JobOrder job(3, 0);
  REQUIRE(job.begin_epoch(Order{2, 1, 0}).ok());
  CHECK(job.begin_epoch(Order{}).error().code() == ErrorCode::kInvalidArgument);
  CHECK(job.begin_epoch(Order{0, 3}).error().message() == "sample 3 is none of the 3");
  CHECK(job.announce_next_epoch(Order{UINT32_MAX}).error().code() == ErrorCode::kInvalidArgument);
  check_distances(job, {2, 1, 0});
  CHECK(job.epochs() == 1);
}

TEST_CASE("an order takes four bytes a sample, and as many for a use where samples come twice") {
  JobOrder job(1000, 0);
  CHECK(job.memory_bytes() == 4000);
  Order order(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) order[i] = i;
  REQUIRE(job.begin_epoch(order).ok());
  CHECK(job.memory_bytes() == 4000);
  order[1] = 0;
  REQUIRE(job.announce_next_epoch(order).ok());
  CHECK(job.memory_bytes() == 12000);
}

}  // namespace
}  // namespace sluice::cache
