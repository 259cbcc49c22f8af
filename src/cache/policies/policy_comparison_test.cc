// The policies of a shared cache against each other: the reference figures, and what holds for all workloads.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "src/base/testing/catch.h"
#include "src/cache/policies/testing/fetch_account.h"

namespace sluice::cache::testing {
namespace {

using Make = MadeCachePolicy (*)(CacheSpace);

std::vector<Announces> all_announce(const SharedWorkload& workload, Announces announces) {
  return std::vector<Announces>(workload.orders.size(), announces);
}

double fetches(Make make, const SharedWorkload& workload, std::uint64_t capacity) {
  return account_of(*make(space_of(workload, capacity)), workload).fetches_per_use();
}

double fetches_announced(Announces announces, const SharedWorkload& workload, std::uint64_t capacity) {
  const auto policy = announced_orders(space_of(workload, capacity));
  return account_of(*policy, workload, all_announce(workload, announces)).fetches_per_use();
}

// A use for each character, all of which count.
SharedWorkload sequence(const std::vector<std::uint32_t>& samples) {
  SharedWorkload workload;
  workload.samples = 4;
  workload.bytes.assign(4, 1);
  workload.orders = {{samples}};
  for (std::uint32_t i = 0; i < samples.size(); ++i) workload.uses.push_back({0, 0, i, samples[i]});
  workload.counted_to = samples.size();
  return workload;
}

// Every way to keep or not to keep, and to evict. `cached` is a set of samples, a bit each.
std::uint32_t fewest_fetches(const SharedWorkload& workload, std::size_t from, std::uint32_t cached, int capacity) {
  if (from == workload.uses.size()) return 0;
  const std::uint32_t wanted = 1U << workload.uses[from].sample;
  if ((cached & wanted) != 0) return fewest_fetches(workload, from + 1, cached, capacity);
  std::uint32_t best = fewest_fetches(workload, from + 1, cached, capacity);
  if (__builtin_popcount(cached) < capacity)
    best = std::min(best, fewest_fetches(workload, from + 1, cached | wanted, capacity));
  for (std::uint32_t sample = 0; sample < 4; ++sample) {
    if ((cached & (1U << sample)) == 0) continue;
    best = std::min(best, fewest_fetches(workload, from + 1, (cached & ~(1U << sample)) | wanted, capacity));
  }
  return best + 1;
}

TEST_CASE("Belady has as few fetches as any way to keep and evict") {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::uint32_t> samples(1 + random() % 9);
    for (std::uint32_t& sample : samples) sample = random() % 4;
    const SharedWorkload workload = sequence(samples);
    for (const int capacity : {0, 1, 2}) {
      INFO("case " << i << ", capacity " << capacity);
      const auto account = account_of(*belady(workload, static_cast<std::uint64_t>(capacity)), workload);
      CHECK(account.fetches == fewest_fetches(workload, 0, 0, capacity));
    }
  }
}

// Simulated for issue 17 with other code: hits of a use, 3,000 samples, 8 epochs, equal jobs out of phase. Substitution
// is of one kind there, and counted by its fetches.
TEST_CASE("fetches of each policy are as in the reference's table, and those of announced orders close to the least") {
  constexpr std::uint32_t kSamples = 1000;
  struct Case {
    std::uint32_t jobs;
    double share;
    double lru, never, belady;  // hits
    double announced;           // fetches at most, where each epoch is announced as it begins
  };
  for (const Case& c : {
           Case{1, .2, .020, .200, .200, .80},
           Case{2, .1, .051, .100, .314, .73},
           Case{2, .2, .107, .200, .442, .60},
           Case{2, .4, .240, .400, .638, .42},
           Case{4, .2, .152, .200, .506, .53},
           Case{4, .4, .318, .400, .697, .35},
           Case{8, .4, .359, .400, .720, .32},
       }) {
    INFO(c.jobs << " jobs, a cache of " << c.share);
    const SharedWorkload workload = jobs_out_of_phase(kSamples, c.jobs, 5, 1);
    const auto capacity = static_cast<std::uint64_t>(std::lround(c.share * kSamples));
    CHECK(fetches(least_recently_used, workload, capacity) == Approx(1 - c.lru).margin(.02));
    CHECK(fetches(never_evict, workload, capacity) == Approx(1 - c.never).margin(.01));
    const double least = account_of(*belady(workload, capacity), workload).fetches_per_use();
    CHECK(least == Approx(1 - c.belady).margin(.02));
    const double by_epoch = fetches_announced(Announces::kEpoch, workload, capacity);
    CHECK(by_epoch <= c.announced + .005);
    const double ahead = fetches_announced(Announces::kNextEpoch, workload, capacity);
    // Least over all uses, of which these are a part.
    CHECK(ahead == Approx(least).margin(.02));
  }
}

TEST_CASE("substitution fetches more than announced orders, and changes the order of training") {
  const SharedWorkload workload = jobs_out_of_phase(3000, 2, 3, 2);
  const CacheSpace space = space_of(workload, 600);
  const auto refilled = account_of(*substitution_refilled(space), workload);
  const auto on_demand = account_of(*substitution_on_demand(space), workload);
  const auto announced = account_of(*announced_orders(space), workload);
  CHECK(refilled.fetches_per_use() == Approx(.73).margin(.05));
  CHECK(on_demand.fetches_per_use() > announced.fetches_per_use() + .05);
  CHECK_FALSE(refilled.keeps_orders);
  CHECK_FALSE(on_demand.keeps_orders);
  CHECK(announced.keeps_orders);
}

// A whole epoch of one job; a batch of substitution divides it.
double fetches_of_epoch(CachePolicy& policy, std::uint32_t job, const std::vector<std::uint32_t>& order) {
  policy.begin_epoch(job, order, 0);
  std::uint32_t fetches = 0;
  for (const std::uint32_t sample : order) fetches += policy.serve(job, sample).fetches;
  return fetches / static_cast<double>(order.size());
}

TEST_CASE("substitution keeps what it has while one job reads: alone from the start, and when the other has left") {
  const SharedWorkload workload = jobs_out_of_phase(640, 2, 4, 4);
  const auto& orders = workload.orders;
  for (const auto make : {substitution_on_demand, substitution_refilled}) {
    const MadeCachePolicy policy = make(space_of(workload, 160));
    INFO(policy->name());
    fetches_of_epoch(*policy, 7, orders[0][0]);
    CHECK(fetches_of_epoch(*policy, 7, orders[0][1]) == Approx(.75));
    fetches_of_epoch(*policy, 9, orders[1][0]);
    policy->leave(9);
    fetches_of_epoch(*policy, 7, orders[0][2]);
    CHECK(fetches_of_epoch(*policy, 7, orders[0][3]) == Approx(.75));
  }
}

TEST_CASE("a job that begins in the middle of an epoch has the rest of it, each sample once") {
  const SharedWorkload workload = jobs_out_of_phase(640, 2, 1, 5);
  const std::vector<std::uint32_t>& order = workload.orders[0][0];
  for (const auto make : {substitution_on_demand, substitution_refilled}) {
    const MadeCachePolicy policy = make(space_of(workload, 160));
    INFO(policy->name());
    fetches_of_epoch(*policy, 1, workload.orders[1][0]);
    policy->begin_epoch(0, order, 320);
    std::vector<std::uint32_t> served;
    for (std::size_t i = 320; i < order.size(); ++i) served.push_back(policy->serve(0, order[i]).sample);
    CHECK(served != std::vector<std::uint32_t>(order.begin() + 320, order.end()));
    std::sort(served.begin(), served.end());
    std::vector<std::uint32_t> rest(order.begin() + 320, order.end());
    std::sort(rest.begin(), rest.end());
    CHECK(served == rest);
  }
}

TEST_CASE("no policy that keeps the order has more hits than the share that fits, for one job") {
  const SharedWorkload workload = jobs_out_of_phase(500, 1, 6, 3);
  for (const std::uint64_t capacity : {0, 50, 250, 450, 500}) {
    const double least = 1 - static_cast<double>(capacity) / 500;
    for (const Make make : {least_recently_used, first_in_first_out, never_evict})
      CHECK(fetches(make, workload, capacity) >= Approx(least).margin(1e-9));
    CHECK(account_of(*belady(workload, capacity), workload).fetches_per_use() >= Approx(least).margin(1e-9));
    for (const auto announces : {Announces::kNothing, Announces::kEpoch, Announces::kNextEpoch})
      CHECK(fetches_announced(announces, workload, capacity) == Approx(least).margin(1e-9));
  }
}

struct RandomCase {
  SharedWorkload workload;
  std::vector<Announces> announces;
  std::uint64_t capacity_bytes = 0;
};

// Jobs of other paces and sizes, on parts of the data that overlap, which come late and announce what they like.
RandomCase random_case(std::mt19937& random, std::uint32_t bytes_max, bool all_honest) {
  constexpr std::uint32_t kSamples = 600;
  std::vector<SimulatedJob> jobs(2 + random() % 4);
  RandomCase result;
  for (SimulatedJob& job : jobs) {
    job.speed = std::array{0.3, 1.0, 1.0, 2.5}[random() % 4];
    job.begins = static_cast<double>(random() % 2000);
    job.epochs = static_cast<std::uint32_t>(std::ceil(8 * job.speed));
    const std::uint32_t percent = std::array{100, 100, 60, 30}[random() % 4];
    for (std::uint32_t sample = 0; sample < kSamples; ++sample)
      if (random() % 100 < percent) job.samples.push_back(sample);
    const std::array kinds{Announces::kEpoch, Announces::kNextEpoch, Announces::kNothing, Announces::kFalsely};
    result.announces.push_back(kinds[random() % (all_honest ? 3 : 4)]);
  }
  result.workload = workload_of(kSamples, jobs, static_cast<std::uint32_t>(random()));
  for (std::uint32_t& bytes : result.workload.bytes) bytes = 1 + random() % bytes_max;
  result.capacity_bytes = kSamples * bytes_max / (4 + random() % 16);
  return result;
}

TEST_CASE("announced orders fetch no more than never evicting, for any set of jobs, and keep the order of each job") {
  std::mt19937 random(8);
  double sum_announced = 0;
  double sum_never = 0;
  for (int i = 0; i < 20; ++i) {
    INFO("case " << i);
    const bool all_honest = i % 3 != 0;
    const auto [workload, announces, capacity_bytes] = random_case(random, i % 2 == 0 ? 1 : 50, all_honest);
    const CacheSpace space = space_of(workload, capacity_bytes);
    const auto announced = account_of(*announced_orders(space), workload, announces);
    const auto never = account_of(*never_evict(space), workload);
    CHECK(announced.keeps_orders);
    CHECK(announced.fetched_share() <= never.fetched_share() + .01);
    sum_announced += announced.fetched_share();
    sum_never += never.fetched_share();
  }
  CHECK(sum_announced < .9 * sum_never);
}

}  // namespace
}  // namespace sluice::cache::testing
