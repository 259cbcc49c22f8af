// What jobs announce, where each daemon is asked for a part of every epoch.
#include <numeric>
#include <set>

#include "src/cache/announced_orders.h"
#include "worker-image/testing/cache_cluster.h"
#include "worker-image/testing/eventually.h"

namespace sluice::node_cache {
namespace {

using sluice::testing::eventually;
using testing::CacheCluster;
using testing::CachePod;
using testing::key_of;
using testing::kValueBytes;

std::vector<std::uint64_t> places_of(std::uint32_t samples) {
  std::vector<std::uint64_t> places;
  for (std::uint32_t sample = 0; sample < samples; ++sample)
    places.push_back(cache::hash_of(key_of(static_cast<int>(sample)).place));
  return places;
}

std::vector<std::uint64_t> announced_by_node(CacheCluster& cluster) {
  std::vector<std::uint64_t> counts;
  for (const auto& [address, daemon] : cluster.daemons) counts.push_back(daemon->node.counters->announced_epochs);
  return counts;
}

// Whether so many epochs are known to each daemon in the end. They hear of it behind the pod.
bool know_in_the_end(CacheCluster& cluster, const std::vector<std::uint64_t>& epochs) {
  return eventually([&] { return announced_by_node(cluster) == epochs; });
}

// A pod of the first node, whose data set has a hundred samples.
struct AnnouncingPod : CachePod {
  explicit AnnouncingPod(CacheCluster& cluster) : CachePod(cluster, 0) {}

  void announce(std::uint64_t seed) { client.announce(places, {.seed = seed, .length = places.size()}); }

  const std::vector<std::uint64_t> places = places_of(100);
};

TEST_CASE("an epoch that a pod announces is known to all daemons, and the places of its samples travel once") {
  CacheCluster cluster(3);
  AnnouncingPod pod(cluster);
  pod.announce(1);
  CHECK(know_in_the_end(cluster, {1, 1, 1}));
  CHECK(cluster.at(1).peer_announcements == 2);  // it did not know the data set
  pod.announce(2);
  CHECK(know_in_the_end(cluster, {2, 2, 2}));
  CHECK(cluster.at(1).peer_announcements == 3);
  CHECK(eventually([&] { return cluster.at(0).peers.counters().announcements == 6; }));  // counted behind the answer
  CHECK(cluster.at(0).peer_announcements == 0);
  CHECK(pod.errors() == 0);
}

TEST_CASE("a data set of one sample is known to the daemons that have none of it, too") {
  CacheCluster cluster(3);
  CachePod pod(cluster, 0);
  pod.client.announce(places_of(1), {.seed = 1, .length = 1});
  CHECK(know_in_the_end(cluster, {1, 1, 1}));
}

TEST_CASE("daemons that come and go change all parts, so the places are told anew") {
  CacheCluster cluster(2);
  AnnouncingPod pod(cluster);
  pod.announce(1);
  CHECK(know_in_the_end(cluster, {1, 1}));
  cluster.start(2);
  cluster.meet();
  pod.announce(2);
  CHECK(know_in_the_end(cluster, {2, 2, 1}));
}

TEST_CASE("a daemon that has forgotten the data set gets the places with a later epoch") {
  CacheCluster cluster(2);
  AnnouncingPod pod(cluster);
  pod.announce(1);
  CHECK(know_in_the_end(cluster, {1, 1}));
  cluster.start(1);
  cluster.meet();
  std::uint64_t epoch = 1;
  CHECK(eventually([&] {
    pod.announce(++epoch);
    return announced_by_node(cluster)[1] > 0;
  }));
  CHECK(epoch > 2);
  CHECK(cluster.at(0).node.counters->misses == 0);
}

TEST_CASE("a daemon that is gone or of an earlier version does not hear of epochs, and the others do") {
  CacheCluster cluster(3);
  cluster.at(2).is_of_earlier_version = true;
  AnnouncingPod pod(cluster);
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    pod.announce(epoch);
    CHECK(know_in_the_end(cluster, {epoch, epoch, 0}));
  }
  CHECK(eventually([&] { return cluster.at(2).peer_announcements == 1; }));
  // Questions go to it as before.
  CHECK(cluster.at(0).peers.counters().errors.node_wrong == 0);
  CHECK(pod.fetches(cluster.number_at(2)));
  CHECK(cluster.at(2).peer_questions == 1);
  cluster.stop(1);
  pod.announce(9);
  CHECK(know_in_the_end(cluster, {4, 0}));
  CHECK(eventually([&] { return cluster.at(0).peers.counters().errors.node_gone == 1; }));
  CHECK(pod.errors() == 0);
}

TEST_CASE("a namespace announces for itself alone, and a token that is not taken announces nothing") {
  CacheCluster cluster(2);
  cluster.at(1).refused_token = "team-b";
  CachePod refused(cluster, 0, "team-b"), pod(cluster, 0);
  refused.client.announce(places_of(10), {.seed = 1, .length = 10});
  pod.client.announce(places_of(10), {.seed = 1, .length = 10});
  CHECK(know_in_the_end(cluster, {2, 1}));
}

TEST_CASE("all daemons tell about as much of a job's records, by one number of the job and one of its data set") {
  CacheCluster cluster(3);
  AnnouncingPod pod(cluster);
  pod.announce(1);
  CHECK(know_in_the_end(cluster, {1, 1, 1}));
  for (int sample = 0; sample < 100; ++sample) pod.fetches(sample);
  std::set<std::pair<std::uint64_t, std::optional<std::uint64_t>>> numbers;
  for (const auto& [address, daemon] : cluster.daemons) {
    const auto kept = daemon->node.cache->kept_for_jobs();
    REQUIRE(kept.size() == 1);
    numbers.emplace(kept[0].job, kept[0].data_set);
    CHECK(kept[0].bytes == Approx(100 * kValueBytes / 3.0).epsilon(0.5));
  }
  CHECK(numbers.size() == 1);
  CHECK(numbers.begin()->second.has_value());
}

// ---- what it is good for ----

constexpr std::uint32_t kSamples = 900;

// Of so many ranks, one on each node in turn, which use their parts of each epoch side by side.
class Job {
 public:
  Job(CacheCluster& cluster, cache::JobId number, std::uint32_t ranks, bool announces)
      : number_(number), announces_(announces), places_(places_of(kSamples)) {
    of_all_ranks_.declared(number, 1, kSamples);
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      pods_.push_back(
          std::make_unique<CachePod>(cluster, static_cast<int>(rank % cluster.daemons.size()), "team-a", number));
  }
  // Whether it was read from its source.
  bool next(CacheCluster& cluster) {
    if (at_ == 0) begin_epoch(cluster);
    const std::uint32_t sample = order_[at_];
    const bool is_fetched = pods_[at_ % pods_.size()]->fetches(static_cast<int>(sample));
    at_ = (at_ + 1) % kSamples;
    return is_fetched;
  }

 private:
  void begin_epoch(CacheCluster& cluster) {
    const auto ranks = static_cast<std::uint32_t>(pods_.size());
    EpochOrder order{.seed = 1000 * number_ + ++epoch_, .length = kSamples, .ranks = ranks};
    order_ = *of_all_ranks_.uses_of(number_, {.seed = order.seed, .length = kSamples});
    if (!announces_) return;
    for (; order.rank < ranks; ++order.rank) {
      std::vector<std::uint64_t> more = announced_by_node(cluster);
      for (std::uint64_t& epochs : more) ++epochs;
      pods_[order.rank]->client.announce(places_, order);
      REQUIRE(know_in_the_end(cluster, more));
    }
  }

  const cache::JobId number_;
  const bool announces_;
  const std::vector<std::uint64_t> places_;
  std::vector<std::unique_ptr<CachePod>> pods_;
  cache::AnnouncedOrders of_all_ranks_;
  std::vector<std::uint32_t> order_;
  std::uint64_t epoch_ = 0;
  std::size_t at_ = 0;
};

// Of each sample that two jobs use, out of phase, over three nodes with room for .4 of the samples.
double fetches_of_two_jobs(std::uint32_t ranks, bool announces) {
  const auto bytes = static_cast<std::uint64_t>(0.4 * kSamples / 3 * (kValueBytes + 60));
  CacheCluster cluster(3, {.bytes = bytes, .records = 1 << 12, .segment_bytes = bytes / 40}, 0);
  Job first(cluster, 1, ranks, announces), second(cluster, 2, ranks, announces);
  for (std::uint32_t use = 0; use < kSamples / 2; ++use) first.next(cluster);
  int fetches = 0;
  for (std::uint32_t use = 0; use < 6 * kSamples; ++use) {
    const int both = (first.next(cluster) ? 1 : 0) + (second.next(cluster) ? 1 : 0);
    if (use >= 2 * kSamples) fetches += both;
  }
  return fetches / (8.0 * kSamples);
}

TEST_CASE("jobs that announce their epochs to three nodes' caches fetch less, with a rank on each node, too",
          "[one thread]") {
  const double unknown = fetches_of_two_jobs(1, false), known = fetches_of_two_jobs(1, true);
  CAPTURE(unknown, known);
  CHECK(known < unknown - 0.03);
  const double ranks = fetches_of_two_jobs(3, true);
  CAPTURE(ranks);
  CHECK(ranks < unknown - 0.03);
}

}  // namespace
}  // namespace sluice::node_cache
