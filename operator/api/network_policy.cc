#include "operator/api/network_policy.h"

namespace sluice::api {

using nlohmann::json;

namespace {

json pods_of(std::string_view job, std::string_view component) { return {{"matchLabels", labels_of(job, component)}}; }

}  // namespace

NetworkPolicyDraft::NetworkPolicyDraft(std::string_view name_space, std::string_view name)
    : ObjectDraft(kNetworkPolicies, name_space, name) {
  spec() = {{"policyTypes", json::array({"Ingress"})}};
}

void NetworkPolicyDraft::protect_pods_of(std::string_view job, std::string_view component) {
  spec()["podSelector"] = pods_of(job, component);
}

void NetworkPolicyDraft::let_in_pods_of(std::string_view job, std::string_view component,
                                        const std::vector<int>& tcp_ports) {
  let_in(json::array({{{"podSelector", pods_of(job, component)}}}), tcp_ports);
}

void NetworkPolicyDraft::let_in(json peers, const std::vector<int>& tcp_ports) {
  json ports = json::array();
  for (const int port : tcp_ports) ports.push_back({{"port", port}, {"protocol", "TCP"}});
  spec()["ingress"].push_back({{"from", std::move(peers)}, {"ports", std::move(ports)}});
}

}  // namespace sluice::api
