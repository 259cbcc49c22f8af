// Taints that Kubernetes itself puts on nodes.
#pragma once

#include <string_view>

namespace sluice::api {

// Of a node that is cordoned, by the node controller.
inline constexpr std::string_view kCordonTaint = "node.kubernetes.io/unschedulable";
// Of a node that does not answer, or says that it is not ready: its pods have to go after a while.
inline constexpr std::string_view kTaintsOfLostNodes[] = {"node.kubernetes.io/not-ready",
                                                          "node.kubernetes.io/unreachable"};

}  // namespace sluice::api
