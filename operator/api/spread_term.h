// How kube-scheduler makes pods of one template keep apart: required anti-affinity, and topologySpreadConstraints that
// say DoNotSchedule.
//
// Only terms that select the template's own pods. Other pods that they select are not looked at; nor are
// matchLabelKeys, whose labels all pods of a template share.
//
// Thread safety: values.
#pragma once

#include <compare>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::api {

struct SpreadTerm {
  std::string topology_key;  // the label of nodes whose values are the domains
  int most_ahead = 1;        // pods that a domain may have more than the least
  bool apart = false;        // anti-affinity: the least is none, and nodes without the label take any number
  int least_domains = 1;     // with fewer domains than these the least is none
  bool by_affinity = true;   // domains count where node selector and node affinity allow a node
  bool by_taints = false;    // and where the pods tolerate its taints

  auto operator<=>(const SpreadTerm&) const = default;
};

// Of a pod template, for pods in this namespace.
std::vector<SpreadTerm> spread_terms(const nlohmann::json& pod_template, std::string_view name_space);

}  // namespace sluice::api
