#include "operator/observe/pod_view.h"

#include <algorithm>

#include "operator/api/pod.h"

namespace sluice::observe {
namespace {

scheduler::Worker view_worker(const api::Pod& pod) {
  const api::SeenCondition ready = pod.ready_condition();
  scheduler::Worker worker;
  worker.name = pod.name();
  worker.node = pod.node();
  worker.ready = ready.is_true();
  worker.created_at_seconds = pod.created_at_seconds();
  if (worker.ready) worker.ready_since_seconds = ready.since_seconds();
  worker.draining = pod.deleting();
  return worker;
}

}  // namespace

PodView view_pod(const kube::Json& object) {
  const api::Pod pod(object);
  PodView view;
  view.uid = pod.uid();
  view.controller_uid = pod.controller_uid();
  view.node = pod.node();
  view.request_millicores = pod.request_millicores();
  view.request_memory_bytes = pod.request_memory_bytes();
  view.request_without_feeder_millicores = view.request_millicores;
  view.is_trainer = pod.is_trainer();
  if (view.is_trainer) view.feeder = api::view_feeder(object);
  if (view.feeder) {
    view.request_millicores = pod.request_millicores(view.feeder->reserved_millicores());
    view.request_without_feeder_millicores = pod.request_millicores(0);
  }
  view.finished = pod.ended();
  view.leaving = pod.deleting();
  const auto hindrance = view.is_trainer ? pod.hindrance() : std::nullopt;
  view.unschedulable = view.node.empty() && hindrance && hindrance->reason == "Unschedulable";
  view.is_worker = pod.is_worker();
  view.devices = pod.devices();
  if (view.node.empty() && !view.is_worker && (view.is_trainer || pod.lacks_cpu_or_memory())) {
    view.rules = pod.node_rules();
    view.nominated_node = pod.nominated_node();
  }
  if (!view.is_worker) return view;
  view.worker = view_worker(pod);
  view.said_ready_since_seconds = view.worker.ready_since_seconds;
  view.waits_at_gate = !pod.gate().empty();
  view.worker_memory_bytes = pod.worker_memory_bytes();
  if (const std::int64_t own = pod.worker_millicores(); own > 0)
    view.beside_worker_millicores = std::max<std::int64_t>(0, view.request_millicores - own);
  if (view.worker_memory_bytes > 0)
    view.beside_worker_memory_bytes = std::max<std::int64_t>(0, view.request_memory_bytes - view.worker_memory_bytes);
  view.worker_ran_out_of_memory = pod.worker_ran_out_of_memory();
  return view;
}

}  // namespace sluice::observe
