#include <cmath>
#include <nlohmann/json.hpp>

#include "scheduler/simulator/report/cached_reads.h"
#include "scheduler/simulator/report/report.h"

namespace sluice::simulator {
namespace {

nlohmann::ordered_json json_of(const Interval& interval) {
  return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

// Seconds and cores to a thousandth.
double in_thousandths(double value) { return std::round(value * 1000) / 1000; }

// A step is [seconds, speed, local, remote and wanted cores], or [seconds] from when on the job waits for a node.
nlohmann::ordered_json steps_of(const JobRecord& job) {
  auto steps = nlohmann::ordered_json::array();
  for (const TimelineStep& step : job.timeline) {
    auto numbers = nlohmann::ordered_json::array({in_thousandths(step.at_seconds)});
    if (step.running)
      for (const double value : {step.speed, step.local_cores, step.remote_cores, step.wanted_cores})
        numbers.push_back(in_thousandths(value));
    steps.push_back(std::move(numbers));
  }
  return steps;
}

nlohmann::ordered_json time_line_of(const RunRecord& run, const Figures& figures, const Workload& workload) {
  nlohmann::ordered_json line;
  for (const Figure figure : {Figure::kAllocatedUtilisation, Figure::kWallUtilisation, Figure::kMeanJct,
                              Figure::kMakespan, Figure::kWorkersStarted})
    line["figures"].push_back(std::string(text_of(figure).title) + " " + shown(figure, at(figures, figure)));
  for (std::size_t i = 0; i < run.jobs.size(); ++i)
    line["jobs"].push_back({{"name", workload[i].name},
                            {"gpus", workload[i].gpus},
                            {"gpu_seconds", workload[i].gpu_seconds()},
                            {"finish_seconds", in_thousandths(run.jobs[i].finish_seconds)},
                            {"steps", steps_of(run.jobs[i])}});
  return line;
}

nlohmann::ordered_json reads_of(const Grid& grid, int policy) {
  nlohmann::ordered_json reads = {{"cache", name_of(grid.runs[policy][0].cache)},
                                  {"fetches_per_sample", json_of(mean_interval(fetches_per_sample(grid, policy)))},
                                  {"keeps_orders", keeps_orders(grid, policy)}};
  for (const RunRecord& run : grid.runs[policy]) {
    reads["gigabytes_by_seed"].push_back(all_reads(run).gigabytes);
    reads["fetched_gigabytes_by_seed"].push_back(all_reads(run).fetched_gigabytes);
  }
  return reads;
}

}  // namespace

std::string json_report(const Scenario& scenario, const Grid& grid) {
  nlohmann::ordered_json root;
  root["scenario"] = scenario.name;
  root["summary"] = scenario.summary;
  root["seeds"] = grid.workloads.size();
  root["jobs_per_seed"] = grid.workloads[0].size();
  root["cluster"] = {{"gpus", scenario.cluster.gpus()}, {"cores", scenario.cluster.cores()}};
  root["bound"] = {{"mean_slowdown_under_static", grid.bound.mean_slowdown},
                   {"mean_knee_cores_per_gpu", grid.bound.mean_knee},
                   {"effective_cores_per_gpu", grid.bound.effective_cores},
                   {"gain_at_most", grid.bound.mean_slowdown},
                   {"gain_at_most_while_full", grid.bound.when_full},
                   {"single_job_at_most", grid.bound.best_single_job},
                   {"sentence", bound_sentence(grid.bound)}};
  root["table"] = policy_table(grid).rows();
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
    if (!scenario.cluster.data_sets.empty()) entry["reads"] = reads_of(grid, policy);
    if (!grid.runs[policy][0].jobs[0].timeline.empty())
      entry["time_line"] = time_line_of(grid.runs[policy][0], grid.figures[policy][0], grid.workloads[0]);
    root["policies"].push_back(std::move(entry));
  }
  return root.dump(1) + "\n";
}

}  // namespace sluice::simulator
