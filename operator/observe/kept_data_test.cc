#include "operator/observe/kept_data.h"

#include <algorithm>

#include "operator/observe/prometheus_source.h"
#include "operator/observe/snapshot_builder.h"
#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::observe {
namespace {

constexpr const char* kOwnNamespace = "sluice-system";
const scheduler::JobId kVisionJob{"team-a", "vision"};
// As caches call it.
constexpr const char* kVisionNumber = "f2349ef115acdee9";
constexpr const char* kOtherNumber = "00000000000000b2";

struct KeptSeries {
  const char* node;
  const char* asker;
  double bytes;
  const char* data_set = "";
  const char* name_space = kOwnNamespace;
};

std::map<std::string, double> kept_of_vision(const std::vector<KeptSeries>& series) {
  prom::InstantVector answer;
  for (const KeptSeries& each : series) {
    prom::Labels labels{{"ns", each.name_space}, {"cache_node", each.node}, {"asker", each.asker}};
    if (*each.data_set != '\0') labels["data_set"] = each.data_set;
    answer.samples.push_back({labels, each.bytes, 1000});
  }
  std::map<std::string, double> kept;
  for (const auto& [node, bytes] : KeptByCaches(answer, "ns", kOwnNamespace).of(kVisionJob)) kept[node] = bytes;
  return kept;
}

using Kept = std::map<std::string, double>;

TEST_CASE("what each node's cache has kept for a job") {
  struct KeptRow {
    const char* situation;
    std::vector<KeptSeries> series;
    Kept kept;
  };
  const KeptRow rows[] = {
      {"nothing is known", {}, {}},
      {"its own, on two nodes", {{"n1", kVisionNumber, 5e9}, {"n2", kVisionNumber, 1e9}}, {{"n1", 5e9}, {"n2", 1e9}}},
      {"that of another job is none of it", {{"n1", kVisionNumber, 5e9}, {"n2", kOtherNumber, 1e9}}, {{"n1", 5e9}}},
      {"the job has not asked for anything yet", {{"n2", kOtherNumber, 1e9, "d1"}}, {}},
      {"another job announced the same data set",
       {{"n1", kVisionNumber, 2e9, "d1"}, {"n1", kOtherNumber, 1e9, "d1"}, {"n2", kOtherNumber, 3e9}},
       {{"n1", 2e9}, {"n2", 3e9}}},
      {"another job announced another one",
       {{"n1", kVisionNumber, 2e9, "d1"}, {"n2", kOtherNumber, 3e9, "d2"}},
       {{"n1", 2e9}}},
      {"rooms and pods of one node: the most",
       {{"n1", kVisionNumber, 2e9, "d1"}, {"n1", kVisionNumber, 3e9}},
       {{"n1", 3e9}}},
      {"a stranger's pod says so", {{"n1", kVisionNumber, 5e9, "", "team-b"}}, {}},
      {"less than nothing", {{"n1", kVisionNumber, -1}}, {}},
      {"no node", {{"", kVisionNumber, 1}}, {}},
  };
  for (const KeptRow& row : rows) {
    CAPTURE(row.situation);
    CHECK(kept_of_vision(row.series) == row.kept);
  }
}

TEST_CASE("it is asked for last, and only where there are caches; if it fails, that is a problem and no more") {
  const prom::Labels labels{{"namespace", kOwnNamespace}, {"cache_node", "n1"}, {"asker", kVisionNumber}};
  for (const bool has_caches : {false, true}) {
    for (const bool fails : {false, true}) {
      CAPTURE(has_caches, fails);
      control::MetricsSource config;
      config.url = "http://prometheus:9090";
      config.own_namespace = kOwnNamespace;
      config.queries.kept_bytes = has_caches ? "kept" : "";
      std::vector<std::string> asked;
      const sluice::testing::ManualClock clock;
      PrometheusSource source(
          [&](const std::string& expression, std::stop_token,
              std::chrono::milliseconds) -> Result<prom::InstantVector> {
            asked.push_back(expression);
            if (expression != "kept") return prom::InstantVector();
            if (fails) return unavailable("away");
            return prom::InstantVector{{{labels, 5e9, 1000}}, {}, {}};
          },
          config, clock);
      const Observations observations = source.observe({});
      CHECK(std::count(asked.begin(), asked.end(), "kept") == (has_caches ? 1 : 0));
      CHECK((asked.back() == "kept") == has_caches);
      CHECK(observations.kept.of(kVisionJob).size() == (has_caches && !fails ? 1 : 0));
      CHECK(observations.problem == (has_caches && fails ? "query keptBytes failed: away" : ""));
    }
  }
}

TEST_CASE("a job of the snapshot has what is kept for it") {
  const prom::Labels labels{{"ns", kOwnNamespace}, {"cache_node", "n1"}, {"asker", "f44ff69e1d21a72d"}};
  Observations observations{.missing_reason = "no metrics"};
  observations.kept = KeptByCaches(prom::InstantVector{{{labels, 5e9, 1000}}, {}, {}}, "ns", kOwnNamespace);
  const scheduler::Job job =
      SnapshotBuilder().build(testing::cluster(), observations, {}, {}, testing::kNow + 60).jobs.at(0);
  REQUIRE(job.kept.size() == 1);
  CHECK(job.kept[0].node == "n1");
  CHECK(job.kept[0].bytes == 5e9);
}

}  // namespace
}  // namespace sluice::observe
