#include "scheduler/decide/what_if.h"

#include <algorithm>
#include <cmath>

#include "scheduler/decide/decide.h"
#include "scheduler/decide/wording.h"
#include "scheduler/model/progress.h"

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
  if (e.confidence == Confidence::kNone || e.knee_cores < kLeastKneeCores) return 0;
  const int change = std::max(more, -plan.recommended);
  const double local_equivalent_cores = static_cast<double>(change * worker_millicores) / 1000 * e.efficiency();
  const double after = plan.planned_supply_ratio + local_equivalent_cores / e.knee_cores;
  return gain_percent(plan.planned_supply_ratio, after, config);
}

std::string gain_text(int more_workers, double gain_percent) {
  Text text;
  text << (more_workers < 0 ? "" : "+") << Workers{more_workers} << ": " << (gain_percent < 0 ? "" : "+")
       << Percent{gain_percent / 100} << " steps/s";
  return text.take();
}

NodesGain gain_of_nodes(const ClusterSnapshot& snapshot, const std::vector<Node>& more, const Config& config) {
  Config silent = config;
  silent.in_words = false;  // only the figures of the two plans are compared
  const Plan before = decide(snapshot, silent);
  ClusterSnapshot larger = snapshot;
  int groups = 0;
  std::size_t topologies = 0;
  int domains = 0;
  for (const Node& node : snapshot.nodes) {
    groups = std::max(groups, node.group + 1);
    topologies = std::max(topologies, node.domains.size());
    for (const int domain : node.domains) domains = std::max(domains, domain + 1);
  }
  for (const Node& node : more) {
    larger.nodes.push_back(node);
    larger.nodes.back().group = groups;  // a new one, which no job has closed
    larger.nodes.back().domains.assign(topologies, domains++);
  }
  const Plan after = decide(larger, silent);
  NodesGain gain;
  for (std::size_t i = 0; i < before.jobs.size(); ++i) {
    const JobPlan& was = before.jobs[i];
    const JobPlan& is = after.jobs[i];
    if (was.reason == Reason::kNotRunning) continue;
    gain.jobs.push_back({was.id, is.recommended - was.recommended,
                         gain_percent(was.planned_supply_ratio, is.planned_supply_ratio, config)});
  }
  gain.utilisation = utilisation_of(larger, after, config);
  return gain;
}

}  // namespace sluice::scheduler
