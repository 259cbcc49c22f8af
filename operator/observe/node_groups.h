// Which nodes take the workers of which job, in the scheduler's compact form: nodes that no job tells apart are a
// group.
//
// Thread safety: none; one owner.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/api/node_rules.h"
#include "scheduler/model/snapshot.h"
#include "src/kube/store.h"

namespace sluice::observe {

// The rules of the jobs of one snapshot, each once.
class JobRules {
 public:
  // Position of the rules; the same for all that are written alike. Lifetime: the rules outlive this object.
  int add(const api::NodeRules& rules);

  const std::vector<const api::NodeRules*>& all() const { return all_; }

 private:
  std::map<std::string_view, int> positions_;
  std::vector<const api::NodeRules*> all_;
};

// What was found out about a node is kept until the node or the rules change.
class NodeGroups {
 public:
  // Sets Node::group of every node. Returns Job::closed_groups by position of the rules. REQUIRES: `nodes` are the
  // objects' views, in the same order.
  std::vector<std::vector<bool>> divide(const JobRules& rules, const kube::Store::Objects& objects,
                                        std::vector<scheduler::Node>& nodes);

 private:
  struct Known {
    kube::ObjectPointer node;
    std::vector<bool> admitted;  // by position of the rules
  };

  std::vector<std::string> texts_;  // of the rules that `known_` is about
  std::map<kube::ObjectKey, Known> known_;
};

}  // namespace sluice::observe
