// The fields of a pod that a decision reads.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "operator/api/feeder_view.h"
#include "operator/api/node_rules.h"
#include "operator/observe/views.h"
#include "scheduler/model/snapshot.h"

namespace sluice::observe {

struct PodView {
  std::string uid;
  std::string controller_uid;  // empty: no object controls it
  std::string node;            // empty: not bound yet
  std::int64_t request_millicores = 0;
  std::int64_t request_memory_bytes = 0;
  bool is_trainer = false;
  std::optional<api::FeederView> feeder;               // of a trainer
  std::int64_t request_without_feeder_millicores = 0;  // the same as request_millicores where there is none
  bool finished = false;                               // has ended, well or not: it reserves nothing
  bool leaving = false;                                // is being deleted
  bool unschedulable = false;                          // of a trainer: no node has room, says kube-scheduler
  // Only of a trainer that is not bound, and of another pod that lacks CPU or memory by kube-scheduler's words.
  std::optional<api::NodeRules> rules;
  std::string nominated_node;                   // on which kube-scheduler makes room for it
  std::map<std::string, std::int64_t> devices;  // requested, by the name of the resource
  bool is_worker = false;
  scheduler::Worker worker = {};                // REQUIRES: is_worker
  double said_ready_since_seconds = 0;          // as the pod has it; worker.ready_since_seconds is by our clock
  bool waits_at_gate = false;                   // a scheduling gate, such as Kueue's, holds the worker back
  std::int64_t worker_memory_bytes = 0;         // requested by the worker's container
  std::int64_t beside_worker_millicores = 0;    // requested by what an admission webhook has added to the pod, such as
  std::int64_t beside_worker_memory_bytes = 0;  // the sidecar of a mesh
  bool worker_ran_out_of_memory = false;        // the same container was stopped for it
};

PodView view_pod(const kube::Json& pod);

using PodViews = Views<PodView>;

}  // namespace sluice::observe
