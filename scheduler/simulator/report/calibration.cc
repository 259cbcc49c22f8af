#include "scheduler/simulator/report/calibration.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "scheduler/simulator/report/report.h"

namespace sluice::simulator {

Result<std::vector<RecordedJob>> parse_record(std::string_view text, const std::string& file,
                                              const std::string& phase) {
  const nlohmann::json root = nlohmann::json::parse(text, nullptr, false);
  if (!root.is_object() || !root.contains("phases")) return invalid_argument(file + ": not a record of make demo");
  try {
    for (const auto& entry : root.at("phases")) {
      if (entry.at("key") != phase) continue;
      std::vector<RecordedJob> jobs;
      for (const auto& [name, job] : entry.at("jobs").items()) {
        jobs.push_back({name, job.at("compute_seconds"), job.at("wait_seconds"), job.at("most_workers_ready")});
        if (!(jobs.back().compute_seconds > 0) || !(jobs.back().wait_seconds >= 0))
          return invalid_argument(file + ": \"" + name + "\" has not trained");
      }
      if (jobs.empty()) return invalid_argument(file + ": phase \"" + phase + "\" has no jobs");
      return jobs;
    }
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument(file + ": not a record of make demo: " + e.what());
  }
  return invalid_argument(file + ": no phase \"" + phase + "\"");
}

Result<std::vector<CalibratedJob>> calibrate(const std::vector<RecordedJob>& record, const RunRecord& run,
                                             const Workload& workload, double worker_cores) {
  std::vector<CalibratedJob> jobs;
  for (const RecordedJob& recorded : record) {
    const auto spec =
        std::find_if(workload.begin(), workload.end(), [&](const JobSpec& job) { return job.name == recorded.name; });
    if (spec == workload.end()) return invalid_argument("the scenario has no job \"" + recorded.name + "\"");
    const JobRecord& simulated = run.jobs[static_cast<std::size_t>(spec - workload.begin())];
    CalibratedJob job;
    job.recorded = recorded;
    job.training_seconds = simulated.finish_seconds - simulated.start_seconds - spec->startup_seconds.value_or(0);
    job.utilisation = spec->ideal_seconds / job.training_seconds;
    for (const TimelineStep& step : simulated.timeline)
      job.most_workers = std::max(job.most_workers, std::round(step.remote_cores / worker_cores));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::string calibration_table(const std::vector<CalibratedJob>& jobs) {
  Table table({"job", "training, recorded", "simulated", "error", "utilisation in the loop, recorded", "simulated",
               "most workers, recorded", "simulated"});
  double sum = 0, worst = 0;
  for (const CalibratedJob& job : jobs) {
    table.add({job.recorded.name, fixed(job.recorded.training_seconds(), 1) + " s",
               fixed(job.training_seconds, 1) + " s", fixed(100 * job.error(), 1) + " %",
               fixed(100 * job.recorded.in_loop_utilisation(), 1) + " %", fixed(100 * job.utilisation, 1) + " %",
               fixed(job.recorded.most_workers, 0), fixed(job.most_workers, 0)});
    sum += std::abs(job.error());
    worst = std::max(worst, std::abs(job.error()));
  }
  return table.text() + "error of the training time: mean " + fixed(100 * sum / static_cast<double>(jobs.size()), 1) +
         " %, worst " + fixed(100 * worst, 1) + " %\n";
}

}  // namespace sluice::simulator
