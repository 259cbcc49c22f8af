// Taints that Kubernetes itself puts on nodes.
#pragma once

#include <string_view>

namespace sluice::api {

// Of a node that is cordoned, by the node controller.
inline constexpr std::string_view kCordonTaint = "node.kubernetes.io/unschedulable";

}  // namespace sluice::api
