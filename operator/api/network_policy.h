// The NetworkPolicy of a job's data workers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/api/object_draft.h"

namespace sluice::api {

inline constexpr kube::Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy"};

inline std::string network_policy_name(std::string_view job) { return std::string(job) + "-workers"; }

// Connections to the pods that it protects are refused, but for those that it lets in. Their own are not bounded.
//
// Thread safety: none; one owner.
class NetworkPolicyDraft : public ObjectDraft {
 public:
  NetworkPolicyDraft(std::string_view name_space, std::string_view name);

  void protect_pods_of(std::string_view job, std::string_view component);
  void let_in_pods_of(std::string_view job, std::string_view component, const std::vector<int>& tcp_ports);
  // An empty list means all peers. An absent one would leave a list of the stored object in force.
  void let_in_all(const std::vector<int>& tcp_ports) { let_in(nlohmann::json::array(), tcp_ports); }

 private:
  void let_in(nlohmann::json peers, const std::vector<int>& tcp_ports);
};

}  // namespace sluice::api
