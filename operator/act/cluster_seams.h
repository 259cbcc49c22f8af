// How reconcilers reach the cluster.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/kube/action.h"
#include "src/kube/event_recorder.h"
#include "src/kube/resource.h"

namespace sluice::act {

// All functions may be called from any thread.
struct ClusterSeams {
  std::function<kube::ObjectPointer(const kube::Resource&, const kube::ObjectKey&)> seen;  // by the informers
  std::function<Result<kube::Json>(const kube::Resource&, const kube::ObjectKey&, std::stop_token)> read;  // live
  std::function<Result<void>(const kube::Action&, std::stop_token)> perform;
  std::function<void(kube::Event)> record;
  // The LimitRanges of a namespace.
  std::function<std::vector<kube::ObjectPointer>(const std::string& name_space)> limit_ranges = [](const std::string&) {
    return std::vector<kube::ObjectPointer>();
  };
  // Ports of nodes that pods hold, and trainers that are still to come; but for those of this job's trainer.
  std::function<std::set<std::int64_t>(const kube::ObjectKey& job)> host_ports = [](const kube::ObjectKey&) {
    return std::set<std::int64_t>();
  };
  // How long the API server will be busy with urgent writes: reports wait for them.
  std::function<std::chrono::milliseconds()> busy = [] { return std::chrono::milliseconds(0); };
};

// The pods of one kind that belong to a job, as the informers see them. May be called from any thread.
using PodsOf = std::function<std::vector<kube::ObjectPointer>(const kube::ObjectKey& job)>;

// Other errors need a person: what the API server refuses stays refused until a spec or our rights change.
inline bool may_pass_by_itself(const Error& error) {
  return error.code() != ErrorCode::kInvalidArgument && error.code() != ErrorCode::kPermissionDenied;
}

// An admission webhook that does not answer is an error that may pass by itself, and often does not.
inline bool is_of_webhook(const Error& error) { return error.message().find("webhook") != std::string::npos; }

}  // namespace sluice::act
