#include "scheduler/simulator/report/goals.h"

#include <algorithm>
#include <array>

#include "scheduler/simulator/report/cached_reads.h"
#include "scheduler/simulator/report/lower_bound.h"
#include "src/base/in_parallel.h"

namespace sluice::simulator {
namespace {

// Baselines get their best variant. Data workers on the idle CPU of GPU hosts help in some scenarios and harm in
// others, and so does the size of Cachew's workers.
constexpr std::array kPeers = {"burst",           "synergy", "hpa",      "hpa-everywhere", "keda",
                               "keda-everywhere", "cachew",  "cachew-2", "cachew-1",       "pecan"};

Judged judged(std::string figure, const Interval& value, std::string remark = "") {
  Judged entry;
  entry.figure = std::move(figure);
  entry.value = value;
  entry.remark = std::move(remark);
  return entry;
}

// Sluice over each peer of the grid, and over the best of them in front.
std::vector<Judged> over_peers(const Grid& grid, int sluice) {
  std::vector<Judged> each;
  for (const char* peer : kPeers) {
    const int column = grid.column(peer);
    if (column < 0) continue;
    const Interval ratio = ratio_interval(grid.values(column, Figure::kMeanJct), grid.values(sluice, Figure::kMeanJct));
    each.push_back(judged(std::string("over_") + peer, ratio));
  }
  const auto best = std::min_element(each.begin(), each.end(),
                                     [](const Judged& a, const Judged& b) { return a.value.value < b.value.value; });
  if (best == each.end()) return each;
  const Judged in_front = judged("over_best_peer", best->value, best->figure.substr(std::string("over_").size()));
  each.insert(each.begin(), in_front);
  return each;
}

// Of the slowest job of each seed; one that never gets there counts with its whole running time.
Interval seconds_to_fast(const Grid& grid, int sluice) {
  std::vector<double> slowest;
  for (const RunRecord& run : grid.runs[sluice]) {
    double longest = 0;
    for (const JobRecord& job : run.jobs)
      longest = std::max(longest, (job.fast_seconds < 0 ? job.finish_seconds : job.fast_seconds) - job.start_seconds);
    slowest.push_back(longest);
  }
  return mean_interval(slowest);
}

// What wrong rates cost, in scenarios that have them.
std::vector<Judged> over_true_rates(const Grid& grid, int sluice) {
  const int right = grid.column("true-rates"), blind = grid.column("no-feedback");
  std::vector<Judged> found;
  if (right < 0) return found;
  const std::vector<double> base = grid.values(right, Figure::kMeanJct);
  found.push_back(judged("over_true_rates", ratio_interval(grid.values(sluice, Figure::kMeanJct), base)));
  if (blind >= 0)
    found.push_back(judged("no_feedback_over_true_rates", ratio_interval(grid.values(blind, Figure::kMeanJct), base)));
  return found;
}

// What noisy metrics cost, in scenarios that have them.
std::vector<Judged> over_little_noise(const Grid& grid, int sluice) {
  const int calm = grid.column("little-noise");
  if (calm < 0) return {};
  const auto ratio = [&](Figure figure) {
    return ratio_interval(grid.values(sluice, figure), grid.values(calm, figure));
  };
  return {judged("starts_over_little_noise", ratio(Figure::kWorkersStarted)),
          judged("over_little_noise", ratio(Figure::kMeanJct))};
}

// What other caches read and take, in scenarios with one.
std::vector<Judged> over_caches(const Scenario& scenario, const Grid& grid, int sluice) {
  std::vector<Judged> each;
  const std::vector<std::string> rivals = cache_rivals(scenario);
  if (rivals.empty()) return each;
  each.push_back(judged("fetches_per_sample", mean_interval(fetches_per_sample(grid, sluice))));
  for (const std::string& rival : rivals) {
    const int column = grid.column(rival);
    if (column < 0) continue;
    const std::string name = rival.substr(rival.find('+') + 1);
    const auto over = [&](Figure figure) {
      return ratio_interval(grid.values(column, figure), grid.values(sluice, figure));
    };
    each.push_back(judged("fetches_per_sample_" + name, mean_interval(fetches_per_sample(grid, column))));
    each.push_back(judged("makespan_over_" + name, over(Figure::kMakespan)));
    each.push_back(judged("jct_over_" + name, over(Figure::kMeanJct)));
  }
  return each;
}

std::vector<Judged> unannounced(const Grid& grid, int sluice) {
  const int silent = grid.column("unannounced");
  if (silent < 0) return {};
  const auto jct = [&](int policy) { return grid.values(policy, Figure::kMeanJct); };
  return {judged("unannounced_over_sluice", ratio_interval(jct(silent), jct(sluice))),
          judged("unannounced_p99_slowdown", mean_interval(grid.values(silent, Figure::kP99Slowdown)))};
}

}  // namespace

bool Judged::reached() const {
  return (!at_least || value.value >= *at_least) && (!at_most || value.value <= *at_most);
}

std::vector<std::string> judged_policies(const Scenario& scenario) {
  std::vector<std::string> names = {"static", "sluice", "perfect", "no-stall"};
  if (scenario.cluster.physics.busy_cpu_error > 0) names.insert(names.end(), {"true-rates", "no-feedback"});
  if (scenario.cluster.physics.metrics_noise > Physics{}.metrics_noise) names.emplace_back("little-noise");
  if (scenario.cluster.physics.remaining_time_known) names.emplace_back("unannounced");
  for (const std::string& rival : cache_rivals(scenario)) names.push_back(rival);
  if (!scenario.baselines) return names;
  for (const std::string& policy : all_policies())
    if (std::find(kPeers.begin(), kPeers.end(), policy) != kPeers.end()) names.push_back(policy);
  return names;
}

Result<std::vector<Judged>> judge(const Scenario& scenario, const Grid& grid, const std::vector<double>& lower_bounds) {
  const int base = grid.column("static"), sluice = grid.column("sluice"), perfect = grid.column("perfect"),
            limit = grid.column("no-stall");
  if (base < 0 || sluice < 0 || perfect < 0 || limit < 0)
    return invalid_argument("goals need the policies static, sluice, perfect and no-stall");
  const auto ratio = [&](int over, int under, Figure figure) {
    return ratio_interval(grid.values(over, figure), grid.values(under, figure));
  };
  std::vector<Judged> all = {
      judged("jct_gain", ratio(base, sluice, Figure::kMeanJct)),
      judged("no_stall_gain", ratio(base, limit, Figure::kMeanJct)),
      judged("share_of_perfect", ratio(perfect, sluice, Figure::kMeanJct)),
      judged("allocated_gain", ratio(sluice, base, Figure::kAllocatedUtilisation)),
      judged("wall_gain", ratio(sluice, base, Figure::kWallUtilisation)),
      judged("p99_slowdown", mean_interval(grid.values(sluice, Figure::kP99Slowdown))),
      judged("p99_slowdown_static", mean_interval(grid.values(base, Figure::kP99Slowdown))),
      judged("harmed", mean_interval(grid.values(sluice, Figure::kHarmed))),
      judged("workers_started", mean_interval(grid.values(sluice, Figure::kWorkersStarted))),
  };
  for (Judged& over : over_peers(grid, sluice)) all.push_back(std::move(over));
  for (Judged& over : over_true_rates(grid, sluice)) all.push_back(std::move(over));
  for (Judged& over : over_little_noise(grid, sluice)) all.push_back(std::move(over));
  for (Judged& over : over_caches(scenario, grid, sluice)) all.push_back(std::move(over));
  for (Judged& over : unannounced(grid, sluice)) all.push_back(std::move(over));
  if (std::any_of(scenario.goals.begin(), scenario.goals.end(),
                  [](const Goal& goal) { return goal.figure == "seconds_to_90"; }))
    all.push_back(judged("seconds_to_90", seconds_to_fast(grid, sluice)));
  if (!lower_bounds.empty()) {
    all.push_back(judged("over_lower_bound", ratio_interval(grid.values(sluice, Figure::kMeanJct), lower_bounds)));
    all.push_back(
        judged("no_stall_over_lower_bound", ratio_interval(grid.values(limit, Figure::kMeanJct), lower_bounds)));
  }
  const auto named = [&](const std::string& figure) {
    return std::find_if(all.begin(), all.end(), [&](const Judged& entry) { return entry.figure == figure; });
  };
  for (const Goal& goal : scenario.goals) {
    const auto entry = named(goal.figure);
    if (entry == all.end()) {
      if (goal.figure == "over_lower_bound" && lower_bounds.empty()) continue;
      return invalid_argument(scenario.name + ": there is no figure \"" + goal.figure + "\" to have a goal");
    }
    entry->at_least = goal.at_least;
    entry->at_most = goal.at_most;
  }
  for (const auto& [figure, value] : scenario.reference)
    if (const auto entry = named(figure); entry != all.end()) entry->reference = value;
  return all;
}

Result<std::vector<double>> lower_bounds_of(const Scenario& scenario, const Grid& grid, int threads) {
  std::vector<double> bounds(grid.workloads.size());
  SLUICE_TRY_VOID(in_parallel(static_cast<int>(bounds.size()), threads, [&](int i) -> Result<void> {
    // Every run of the grid is a point of the programme, so that its optimum cannot be worse than any of them.
    double horizon = 0;
    for (const auto& runs : grid.runs) horizon = std::max(horizon, runs[i].makespan_seconds);
    const auto seed = static_cast<std::uint64_t>(i) + 1;
    SLUICE_TRY(bounds[i], least_mean_completion(scenario.cluster, grid.workloads[i], seed, 1.01 * horizon));
    return {};
  }));
  return bounds;
}

}  // namespace sluice::simulator
