// What the node has kept for jobs, as the operator finds it in Prometheus.
#include "worker-image/cache/kept_gauges.h"

#include <prometheus/registry.h>

#include <cmath>

#include "src/base/testing/catch.h"
#include "src/cache/testing/node.h"
#include "src/cache/testing/store_fixture.h"
#include "src/executor/testing/metrics_text.h"

namespace sluice::node_cache {
namespace {

using cache::testing::key_of;
using cache::testing::value_of;

constexpr std::size_t kKeptBytes = 5000;
const auto kRecordOnDisk = static_cast<double>(cache::record_bytes(key_of(0), kKeptBytes));
constexpr cache::JobId kFirst = 0xa1, kSecond = 0xb2;

class GaugesOfNode {
 public:
  GaugesOfNode() {
    node_.start();
    gauges_ = std::make_unique<KeptGauges>(registry_, *node_.cache, "node-1", "vision");
  }

  // The job asks for these samples; where they are missing they come and are kept.
  void read(cache::JobId job, int from, int to) {
    for (int sample = from; sample < to; ++sample) {
      const auto key = key_of(sample);
      if (node_.cache->find_in_memory({.job = job, .key = key, .value = {}, .value_checksum = 0})) continue;
      const auto value = value_of(key, kKeptBytes);
      node_.cache->keep({.job = job, .key = key, .value = value, .value_checksum = 0});
    }
  }
  void announce(cache::JobId job, std::uint64_t data_set, int samples) {
    cache::Announcement announcement{.job = job, .data_set = data_set, .order = {}, .places = {}};
    announcement.order.length = static_cast<std::uint64_t>(samples);
    for (int sample = 0; sample < samples; ++sample)
      announcement.places.push_back(cache::hash_of(key_of(sample).place));
    node_.cache->announce(announcement);
  }
  // Records by the labels.
  std::map<std::string, int> shown() {
    gauges_->tick();
    std::map<std::string, int> shown;
    for (const std::string& line : sluice::testing::metrics_lines(registry_)) {
      const std::size_t begin = line.find('{') + 1, end = line.find("} ");
      if (end == std::string::npos) continue;
      CHECK(line.starts_with("sluice_cache_node_kept_bytes{cache_node=\"node-1\","));
      const double records = std::stod(line.substr(end + 2)) / kRecordOnDisk;
      shown[line.substr(begin + 20, end - begin - 20)] = static_cast<int>(std::lround(records));
    }
    return shown;
  }

 private:
  sluice::testing::ManualClock clock_;
  cache::testing::Node node_{clock_};
  prometheus::Registry registry_;
  std::unique_ptr<KeptGauges> gauges_;
};

using Shown = std::map<std::string, int>;
constexpr const char* kOfFirst = R"(asker="00000000000000a1",room="vision")";
constexpr const char* kOfSecond = R"(asker="00000000000000b2",room="vision")";

TEST_CASE("each job has a series with the bytes of what it asks for, whichever job has brought it") {
  GaugesOfNode node;
  CHECK(node.shown().empty());
  node.read(kFirst, 0, 100);
  CHECK(node.shown() == Shown{{kOfFirst, 100}});
  node.read(kSecond, 80, 120);
  CHECK(node.shown() == Shown{{kOfFirst, 100}, {kOfSecond, 40}});
}

TEST_CASE("a job that has announced its data set shows its number, and all of it that is here") {
  GaugesOfNode node;
  node.read(kFirst, 0, 100);
  node.announce(kSecond, 0xd5, 200);
  CHECK(node.shown() ==
        Shown{{kOfFirst, 100}, {R"(asker="00000000000000b2",data_set="00000000000000d5",room="vision")", 100}});
  node.announce(kSecond, 0xd6, 50);  // another one: the series changes its name
  CHECK(node.shown() ==
        Shown{{kOfFirst, 100}, {R"(asker="00000000000000b2",data_set="00000000000000d6",room="vision")", 50}});
}

TEST_CASE("of many jobs those with the most are shown") {
  GaugesOfNode node;
  constexpr int kJobs = 40;
  for (int job = 1; job <= kJobs; ++job) node.read(static_cast<cache::JobId>(job), 0, job);
  const Shown shown = node.shown();
  CHECK(shown.size() == KeptGauges::kJobsMost);
  CHECK_FALSE(shown.contains(R"(asker="0000000000000001",room="vision")"));
  CHECK(shown.contains(R"(asker="0000000000000028",room="vision")"));
}

}  // namespace
}  // namespace sluice::node_cache
