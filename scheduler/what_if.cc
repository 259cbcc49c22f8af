#include "scheduler/what_if.h"

#include <algorithm>
#include <cmath>

#include "scheduler/decide.h"
#include "scheduler/progress.h"
#include "scheduler/wording.h"

namespace sluice::scheduler {
namespace {

double gain_percent(double supply_before, double supply_after, const Config& config) {
  const double before = progress(supply_before, config.softmin_exponent);
  const double after = progress(supply_after, config.softmin_exponent);
  if (before > 0) return 100 * (after / before - 1);
  return after > 0 ? 100 : 0;
}

}  // namespace

double gain_of_workers_percent(const JobPlan& plan, std::int64_t worker_millicores, int more, const Config& config) {
  const Estimate& e = plan.estimate;
  if (e.confidence == Confidence::kNone || e.knee_millicores <= 0) return 0;
  const int change = std::max(more, -plan.recommended);
  const double local_equivalent =
      static_cast<double>(change * worker_millicores) * e.remote_rate_per_core / e.local_rate_per_core;
  const double after = e.planned_supply_ratio + local_equivalent / static_cast<double>(e.knee_millicores);
  return gain_percent(e.planned_supply_ratio, after, config);
}

std::string gain_text(int more_workers, double gain_percent) {
  Text text;
  text << (more_workers < 0 ? "" : "+") << Workers{more_workers} << ": " << (gain_percent < 0 ? "" : "+")
       << Percent{gain_percent / 100} << " steps/s";
  return text.take();
}

NodesGain gain_of_nodes(const ClusterSnapshot& snapshot, const std::vector<Node>& more, const Config& config) {
  const Plan before = decide(snapshot, config);
  ClusterSnapshot larger = snapshot;
  larger.nodes.insert(larger.nodes.end(), more.begin(), more.end());
  const Plan after = decide(larger, config);
  NodesGain gain;
  for (std::size_t i = 0; i < before.jobs.size(); ++i) {
    const JobPlan& was = before.jobs[i];
    const JobPlan& is = after.jobs[i];
    if (was.reason == Reason::kNotRunning) continue;
    gain.jobs.push_back({was.id, is.recommended - was.recommended,
                         gain_percent(was.estimate.planned_supply_ratio, is.estimate.planned_supply_ratio, config)});
  }
  gain.utilisation = utilisation_of(larger, after, config);
  return gain;
}

}  // namespace sluice::scheduler
