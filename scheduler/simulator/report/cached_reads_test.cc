// What a report says of caches, and which rivals a scenario is compared with.
#include "scheduler/simulator/report/cached_reads.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "scheduler/simulator/report/goals.h"
#include "scheduler/simulator/report/report.h"
#include "scheduler/simulator/testing/worlds.h"

namespace sluice::simulator {
namespace {

// Four jobs of one data set, whose storage gives a quarter of what they could read.
Scenario throttled(int epochs) {
  Scenario scenario;
  scenario.name = "throttled";
  scenario.cluster = testing::small_cluster();
  scenario.cluster.physics.storage_gbps = 4;
  scenario.cluster.data_sets = {{"photos", 100}};
  scenario.cluster.cache.gigabytes = 40;
  for (int i = 0; i < 4; ++i) {
    JobSpec& job = scenario.jobs.emplace_back(testing::job(150 * i, 4, 1000, 1));
    job.data_set = 0;
    job.epochs = epochs;
  }
  return scenario;
}

Grid grid_of(const Scenario& scenario, std::vector<std::string> policies, int seeds = 2) {
  GridOptions options;
  options.policies = std::move(policies);
  options.seeds = seeds;
  auto grid = run_grid(scenario, {}, options);
  REQUIRE(grid.ok());
  return std::move(grid).value();
}

const Judged& named(const std::vector<Judged>& all, const std::string& figure) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Judged& j) { return j.figure == figure; });
  REQUIRE(found != all.end());
  return *found;
}

TEST_CASE("Each policy has its cache: Sluice and Cachew their own, others that of the scenario or of their name") {
  struct Row {
    const char* policy;
    const char* want;
  };
  const Row rows[] = {{"static", "lru"},
                      {"hpa", "lru"},
                      {"cachew", "keep"},
                      {"cachew-1", "keep"},
                      {"sluice", "reuse-distance"},
                      {"perfect", "reuse-distance"},
                      {"unannounced", "reuse-distance"},
                      {"sluice+quiver", "quiver"},
                      {"static+none", "none"},
                      {"cachew+seneca", "seneca"},
                      {"no-stall", "lru"}};
  std::vector<std::string> names;
  for (const Row& row : rows) names.emplace_back(row.policy);
  const Grid grid = grid_of(throttled(1), names, 1);
  for (const Row& row : rows) {
    CAPTURE(row.policy);
    CHECK(name_of(grid.runs[grid.column(row.policy)][0].cache) == row.want);
  }
}

TEST_CASE("A policy with an unknown cache, or an unknown policy with a cache, is an error") {
  struct Row {
    const char* policy;
    const char* want;
  };
  for (const Row& row : {Row{"sluice+mru", "there is no cache \"mru\""},
                         Row{"slice+lru", "there is no policy \"slice\""}, Row{"sluice+", "there is no cache \"\""}}) {
    GridOptions options;
    options.policies = {row.policy};
    const auto grid = run_grid(throttled(1), {}, options);
    REQUIRE_FALSE(grid.ok());
    CHECK(grid.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(grid.error().message(), Catch::Contains(row.want));
  }
}

TEST_CASE("Reports say what each cache fetched, and whether the order of samples is kept") {
  const Scenario scenario = throttled(2);
  const Grid grid = grid_of(scenario, {"static", "sluice", "sluice+none", "sluice+seneca"});
  const std::string text = text_report(scenario, grid);
  CHECK_THAT(text, Catch::Contains("fetches per sample") && Catch::Contains("changed"));
  const auto rows = cached_reads_table(grid).rows();
  CHECK(rows[3] == std::vector<std::string>{"sluice+none", "none", "1.000", "800", "800", "kept"});
  CHECK(rows[4][5] == "changed");
  const auto json = nlohmann::json::parse(json_report(scenario, grid));
  CHECK(json["policies"][2]["reads"]["fetches_per_sample"]["value"] == Approx(1));
  CHECK(json["policies"][1]["reads"]["cache"] == "reuse-distance");
  CHECK(json["policies"][3]["reads"]["keeps_orders"] == false);
  CHECK(json["policies"][0]["reads"]["fetched_gigabytes_by_seed"].size() == 2);
}

TEST_CASE("Without data sets a report has no word of caches, and a scenario no rivals for its cache") {
  Scenario scenario = throttled(1);
  for (JobSpec& job : scenario.jobs) job.data_set = -1, job.network_gbps_per_gpu = 1;
  scenario.cluster.data_sets.clear();
  const Grid grid = grid_of(scenario, {"static"});
  CHECK(text_report(scenario, grid).find("fetches per sample") == std::string::npos);
  CHECK_FALSE(nlohmann::json::parse(json_report(scenario, grid))["policies"][0].contains("reads"));
  CHECK(cache_rivals(scenario).empty());
  CHECK(cached_reads_table(grid).empty());
}

TEST_CASE("A scenario with a cache is judged by fetches, makespan and JCT against each other cache") {
  const Scenario scenario = throttled(4);
  const std::vector<std::string> rivals = cache_rivals(scenario);
  CHECK(rivals ==
        std::vector<std::string>{"sluice+none", "sluice+lru", "sluice+keep", "sluice+quiver", "sluice+seneca"});
  std::vector<std::string> policies = {"static", "sluice", "perfect", "no-stall"};
  policies.insert(policies.end(), rivals.begin(), rivals.end());
  const Grid grid = grid_of(scenario, policies);
  const auto all = judge(scenario, grid, {});
  REQUIRE(all.ok());
  CHECK(named(*all, "fetches_per_sample_none").value.value == Approx(1));
  CHECK(named(*all, "fetches_per_sample").value.value < named(*all, "fetches_per_sample_lru").value.value);
  const double none = mean(grid.values(grid.column("sluice+none"), Figure::kMakespan));
  const double ours = mean(grid.values(grid.column("sluice"), Figure::kMakespan));
  CHECK(named(*all, "makespan_over_none").value.value == Approx(none / ours).epsilon(0.01));
  CHECK(named(*all, "makespan_over_none").value.value > 1.8);
  CHECK(named(*all, "jct_over_none").value.value > 1.8);
}

}  // namespace
}  // namespace sluice::simulator
