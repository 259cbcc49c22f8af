// How the workers of a job are spread over the domains of its rules (Job::spread), while they are given nodes.
//
// Source: kube-scheduler's filters PodTopologySpread and InterPodAffinity, with the job's own workers as the only pods
// that count.
//
// Thread safety: none. Lifetime: refers to the job's rules.
#pragma once

#include <vector>

#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

class Spread {
 public:
  Spread() = default;  // no rule
  explicit Spread(const Job& job);

  // Whether the node may take one more worker. One step for each rule; a job without rules pays nothing.
  bool admits(const Node& node) const;

  // So many more workers are on the node; negative: so many fewer.
  void add(const Node& node, int workers);

 private:
  struct Count {
    const SpreadRule* rule = nullptr;
    std::vector<int> workers;  // by domain
    int least = 0;             // in a counted domain
  };

  std::vector<Count> counts_;  // by rule
};

}  // namespace sluice::scheduler
