#include <nlohmann/json.hpp>

#include "scheduler/simulator/report.h"

namespace sluice::simulator {
namespace {

nlohmann::ordered_json json_of(const Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

}  // namespace

std::string json_report(const Scenario& scenario, const Grid& grid) {
  nlohmann::ordered_json root;
  root["scenario"] = scenario.name;
  root["summary"] = scenario.summary;
  root["seeds"] = grid.workloads.size();
  root["jobs_per_seed"] = grid.workloads[0].size();
  root["bound"] = {
      {"mean_slowdown_under_static", grid.bound.mean_slowdown}, {"mean_knee_cores_per_gpu", grid.bound.mean_knee},
      {"effective_cores_per_gpu", grid.bound.effective_cores},  {"gain_at_most", grid.bound.mean_slowdown},
      {"gain_at_most_while_full", grid.bound.when_full},        {"single_job_at_most", grid.bound.best_single_job}};
  for (int policy = 0; policy < static_cast<int>(grid.policies.size()); ++policy) {
    nlohmann::ordered_json entry;
    entry["policy"] = grid.policies[policy];
    for (std::size_t i = 0; i < kFigures; ++i) {
      const auto figure = static_cast<Figure>(i);
      const std::vector<double> values = grid.values(policy, figure);
      entry[std::string(text_of(figure).key)] = json_of(mean_interval(values));
      entry[std::string(text_of(figure).key)]["by_seed"] = values;
    }
    const auto ratio = [&](int over, int under, Figure figure) {
      return json_of(ratio_interval(grid.values(over, figure), grid.values(under, figure)));
    };
    entry["ratio_to_first"] = {{"mean_completion", ratio(0, policy, Figure::kMeanJct)},
                               {"allocated_utilisation", ratio(policy, 0, Figure::kAllocatedUtilisation)},
                               {"wall_utilisation", ratio(policy, 0, Figure::kWallUtilisation)}};
    root["policies"].push_back(std::move(entry));
  }
  return root.dump(1) + "\n";
}

}  // namespace sluice::simulator
