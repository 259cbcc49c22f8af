// The part of ClusterModel in which kubelets resize feeders in place.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/feeder_view.h"
#include "operator/api/names.h"
#include "operator/api/node.h"
#include "operator/api/pod.h"
#include "operator/fault_simulation/cluster_model.h"

namespace sluice::simulation {

using api::Pod;
using kube::Json;

namespace {

constexpr const char* kPending = "PodResizePending";

Json* feeder_in(Json& containers) {
  const auto found = std::find_if(containers.begin(), containers.end(), [](const Json& container) {
    return container.value("name", "") == api::kFeederContainer;
  });
  return found == containers.end() ? nullptr : &*found;
}

void drop_pending(Json& status) {
  if (const auto conditions = status.find("conditions"); conditions != status.end())
    conditions->erase(std::remove_if(conditions->begin(), conditions->end(),
                                     [](const Json& condition) { return condition.value("type", "") == kPending; }),
                      conditions->end());
}

void set_pending(Json& status, const char* reason) {
  drop_pending(status);
  status["conditions"].push_back(
      {{"type", kPending}, {"status", "True"}, {"reason", reason}, {"message", "not enough CPU"}});
}

// The resources that the spec asks for are in force.
void grant(Json& pod) {
  const Json* feeder = feeder_in(pod["spec"]["initContainers"]);
  if (feeder == nullptr) return;
  pod["status"]["initContainerStatuses"] =
      Json::array({{{"name", api::kFeederContainer}, {"resources", feeder->value("resources", Json::object())}}});
  drop_pending(pod["status"]);
}

}  // namespace

std::int64_t reserved_millicores(const Json& object) {
  const auto feeder = api::view_feeder(object);
  return feeder ? Pod(object).request_millicores(feeder->reserved_millicores()) : Pod(object).request_millicores();
}

std::int64_t ClusterModel::free_millicores(const std::string& node, const kube::ObjectKey& but) {
  const auto seen = server_.get(kube::kNodes, {"", node});
  if (!seen) return 0;
  std::int64_t free = api::Node(*seen).allocatable_millicores();
  for (const auto& [key, other] : server_.all(kube::kPods))
    if (key != but && Pod(*other).node() == node && !Pod(*other).ended()) free -= reserved_millicores(*other);
  return free;
}

void ClusterModel::report_feeder(Json& pod) const {
  if (workload_.resizes_pods && api::view_feeder(pod)) grant(pod);
}

void ClusterModel::resize(const Due& due) {
  const auto stored = server_.get(kube::kPods, due.key);
  if (!stored || Pod(*stored).uid() != due.uid || !Pod(*stored).serves()) return;
  const auto feeder = api::view_feeder(*stored);
  if (!feeder || feeder->resize == api::FeederView::Resize::kDone) return;
  if (kubelets_are_deaf_) return schedule(Task::kResize, due.key, due.uid, 2, 5);
  const std::string node = Pod(*stored).node();
  const std::int64_t wanted = Pod(*stored).request_millicores(feeder->wanted.request_millicores);
  const auto seen = server_.get(kube::kNodes, {"", node});
  const std::int64_t most = seen ? api::Node(*seen).allocatable_millicores() : 0;
  const bool fits = wanted <= free_millicores(node, due.key);
  server_.modify(
      kube::kPods, due.key,
      [&](Json& pod) {
        if (fits)
          grant(pod);
        else
          set_pending(pod["status"], wanted > most ? "Infeasible" : "Deferred");
      },
      "status");
  if (!fits && wanted <= most) schedule(Task::kResize, due.key, due.uid, 2, 5);
}

}  // namespace sluice::simulation
