// A policy that decides for each job alone, as most baselines do. Each job has a controller, made when the job is first
// seen running and dropped when it is gone.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/model/policy.h"
#include "scheduler/simulator/policies/requests.h"

namespace sluice::scheduler {

// The view of a controller beside its job.
struct Scene {
  const NodeIndex& nodes;
  double now_seconds = 0;
};

// Controller: Request request(const Job&, const Scene&), called once for each decision while the job runs.
template <typename Controller>
class JobByJobPolicy : public Policy {
 public:
  JobByJobPolicy(std::string_view name, Turns turns, std::function<Controller()> make_controller,
                 WorkerNodes worker_nodes = WorkerNodes::kWithoutGpus)
      : name_(name), turns_(turns), worker_nodes_(worker_nodes), make_controller_(std::move(make_controller)) {}

  std::string_view name() const override { return name_; }

  Plan decide(const ClusterSnapshot& snapshot) override {
    const NodeIndex nodes(snapshot.nodes);
    ++decisions_;
    std::vector<Request> requests(snapshot.jobs.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Job& job = snapshot.jobs[i];
      if (!job.running) continue;
      auto known = controllers_.find(job.id);
      if (known == controllers_.end()) known = controllers_.emplace(job.id, Known{make_controller_()}).first;
      known->second.running_at_decision = decisions_;
      requests[i] = known->second.controller.request(job, {nodes, snapshot.taken_at_seconds});
    }
    std::erase_if(controllers_, [&](const auto& entry) { return entry.second.running_at_decision != decisions_; });
    return grant(snapshot, requests, turns_, worker_nodes_);
  }

 private:
  struct Known {
    Controller controller;
    std::int64_t running_at_decision = 0;  // the number of the last one that saw it run
  };

  const std::string_view name_;
  const Turns turns_;
  const WorkerNodes worker_nodes_;
  const std::function<Controller()> make_controller_;
  std::map<JobId, Known> controllers_;
  std::int64_t decisions_ = 0;
};

}  // namespace sluice::scheduler
