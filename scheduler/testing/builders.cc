#include "scheduler/testing/builders.h"

#include <algorithm>
#include <stdexcept>

namespace sluice::scheduler::testing {
namespace {

bool has_worker(const Job& job, const std::string& name) {
  return std::any_of(job.workers.begin(), job.workers.end(), [&](const Worker& worker) { return worker.name == name; });
}

std::string free_worker_name(const Job& job) {
  int ordinal = 0;
  std::string name;
  do name = job.id.name + "-worker-" + std::to_string(ordinal++);
  while (has_worker(job, name));
  return name;
}

void carry_out(const JobPlan& plan, double now_seconds, Job& job) {
  std::erase_if(job.workers, [&](const Worker& worker) {
    return worker.draining || std::find(plan.victims.begin(), plan.victims.end(), worker.name) != plan.victims.end();
  });
  auto node = plan.new_worker_nodes.begin();
  while (std::ssize(job.workers) < plan.workers) {
    const bool has_room = node != plan.new_worker_nodes.end();
    job.workers.push_back({free_worker_name(job), has_room ? *node++ : "", has_room, now_seconds, now_seconds, false});
  }
  for (std::size_t i = 0; i < plan.local.size(); ++i) {
    job.hosts[i].request_millicores = plan.local[i].request_millicores;
    job.hosts[i].limit_millicores = plan.local[i].limit_millicores;
  }
  job.allocated_workers = plan.workers;
  job.memory = plan.estimate.memory;
}

}  // namespace

const JobPlan& plan_of(const Plan& plan, const std::string& name) {
  for (const JobPlan& job : plan.jobs) {
    if (job.id.name == name) return job;
  }
  throw std::out_of_range("no plan for job " + name);
}

ClusterSnapshot applied(ClusterSnapshot snapshot, const Plan& plan) {
  for (Job& job : snapshot.jobs) {
    const auto its = std::find_if(plan.jobs.begin(), plan.jobs.end(), [&](const JobPlan& p) { return p.id == job.id; });
    carry_out(*its, snapshot.taken_at_seconds, job);
  }
  return snapshot;
}

}  // namespace sluice::scheduler::testing
