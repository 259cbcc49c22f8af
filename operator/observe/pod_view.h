// What a decision looks at of a pod.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "operator/observe/views.h"
#include "scheduler/snapshot.h"

namespace sluice::observe {

struct PodView {
  std::string controller_uid;  // empty: nobody controls it
  std::string node;            // empty: not bound yet
  std::int64_t request_millicores = 0;
  bool is_trainer = false;
  bool finished = false;  // has ended, well or not: it reserves nothing
  bool leaving = false;   // is being deleted
  bool is_worker = false;
  scheduler::Worker worker = {};  // REQUIRES: is_worker
};

PodView view_pod(const kube::Json& pod);

using PodViews = Views<PodView>;

// CPU that kube-scheduler reserves for the pod: the larger of what it needs to run (containers and native sidecars) and
// the peak of its initialisation (each init container beside the sidecars started before it), plus overhead; or the
// pod-level request where there is one. KEP-753 and KEP-2837.
std::int64_t pod_request_millicores(const kube::Json& pod);

}  // namespace sluice::observe
