#include "operator/fault_simulation/operator_versions.h"

#include <utility>

#include "operator/api/network_policy.h"
#include "operator/fault_simulation/operator_process.h"

namespace sluice::simulation {

namespace {

act::ClusterSeams without_network_policies(act::ClusterSeams seams) {
  seams.perform = [perform = std::move(seams.perform)](const kube::Action& action,
                                                       std::stop_token stop) -> Result<void> {
    if (action.resource == api::kNetworkPolicies) return {};
    return perform(action, std::move(stop));
  };
  return seams;
}

}  // namespace

control::Config config_of(OperatorVersion version) {
  control::Config config = simulated_config();
  if (version == OperatorVersion::kThis) return config;
  config.image = "sluice:other";
  config.worker_priority_class = "other-workers";
  config.resize_feeders = false;
  return config;
}

control::WrapSeams seams_of(OperatorVersion version, const control::WrapSeams& wrap) {
  if (version == OperatorVersion::kThis) return wrap;
  return [wrap](act::ClusterSeams seams) {
    return without_network_policies(wrap ? wrap(std::move(seams)) : std::move(seams));
  };
}

}  // namespace sluice::simulation
