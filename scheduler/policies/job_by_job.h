// A policy that decides for each job alone, as most rivals do: a controller per job, created when the job is first seen
// running and forgotten when it is gone.
//
// Thread safety: none.
#pragma once

#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/policies/wishes.h"
#include "scheduler/policy.h"

namespace sluice::scheduler {

// What a controller sees beside its job.
struct Scene {
  const NodeIndex& nodes;
  double now_seconds = 0;
};

// Controller: Wish wish(const Job&, const Scene&), called once for each decision while the job runs.
template <typename Controller>
class JobByJobPolicy : public Policy {
 public:
  JobByJobPolicy(std::string_view name, Turns turns, std::function<Controller()> make_controller,
                 WorkerNodes worker_nodes = WorkerNodes::kWithoutGpus)
      : name_(name), turns_(turns), worker_nodes_(worker_nodes), make_controller_(std::move(make_controller)) {}

  std::string_view name() const override { return name_; }

  Plan decide(const ClusterSnapshot& snapshot) override {
    const NodeIndex nodes(snapshot.nodes);
    std::map<JobId, Controller> next;
    std::vector<Wish> wishes;
    for (const Job& job : snapshot.jobs) {
      if (!job.running) {
        wishes.push_back({.explanation = "not running"});
        continue;
      }
      const auto known = controllers_.find(job.id);
      Controller& controller =
          next.emplace(job.id, known == controllers_.end() ? make_controller_() : std::move(known->second))
              .first->second;
      wishes.push_back(controller.wish(job, {nodes, snapshot.taken_at_seconds}));
    }
    controllers_ = std::move(next);
    return fulfil(snapshot, wishes, turns_, worker_nodes_);
  }

 private:
  const std::string_view name_;
  const Turns turns_;
  const WorkerNodes worker_nodes_;
  const std::function<Controller()> make_controller_;
  std::map<JobId, Controller> controllers_;
};

}  // namespace sluice::scheduler
