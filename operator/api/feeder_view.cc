#include "operator/api/feeder_view.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/names.h"

namespace sluice::api {
namespace {

using nlohmann::json;

// Cgroups hold shares, not millicores: what is read back may be a little off.
constexpr std::int64_t kRoundingMillicores = 5;

const json* named(const json& list, std::string_view name) {
  for (const json& entry : list)
    if (text_field(entry, "/name") == name) return &entry;
  return nullptr;
}

FeederCpu cpu_of(const json& container) {
  FeederCpu cpu{millicores_field(container, "/resources/requests/cpu"),
                millicores_field(container, "/resources/limits/cpu")};
  if (cpu.request_millicores == 0) cpu.request_millicores = cpu.limit_millicores;  // as the API server defaults it
  return cpu;
}

FeederView::QosClass class_of(const json& pod) {
  const std::string text = text_field(pod, "/status/qosClass");
  if (text == "Guaranteed") return FeederView::QosClass::kGuaranteed;
  return text == "BestEffort" ? FeederView::QosClass::kBestEffort : FeederView::QosClass::kBurstable;
}

bool same(const FeederCpu& a, const FeederCpu& b) {
  return std::abs(a.request_millicores - b.request_millicores) <= kRoundingMillicores &&
         std::abs(a.limit_millicores - b.limit_millicores) <= kRoundingMillicores;
}

void read_progress(const json& pod, FeederView& view) {
  view.resize = FeederView::Resize::kUnderWay;
  for (const json& condition : list_field(pod, "/status/conditions")) {
    if (text_field(condition, "/type") != "PodResizePending" || text_field(condition, "/status") != "True") continue;
    const bool infeasible = text_field(condition, "/reason") == "Infeasible";
    view.resize = infeasible ? FeederView::Resize::kInfeasible : FeederView::Resize::kDeferred;
    view.problem = text_field(condition, "/message");
  }
}

}  // namespace

std::int64_t FeederView::reserved_millicores() const {
  if (resize == Resize::kInfeasible) return in_force.request_millicores;
  return std::max(wanted.request_millicores, in_force.request_millicores);
}

std::optional<FeederView> view_feeder(const json& pod) {
  const json* container = named(list_field(pod, "/spec/initContainers"), kFeederContainer);
  if (container == nullptr) return std::nullopt;
  FeederView view;
  view.wanted = view.in_force = cpu_of(*container);
  view.qos_class = class_of(pod);
  view.pod_has_resources = !field(pod, "/spec/resources").is_null();
  const json* status = named(list_field(pod, "/status/initContainerStatuses"), kFeederContainer);
  if (status == nullptr) return view;
  if (!field(*status, "/resources").is_object()) {
    view.kubelet_resizes = !boolean_field(*status, "/started");
    return view;
  }
  view.in_force = cpu_of(*status);
  if (!same(view.wanted, view.in_force)) read_progress(pod, view);
  return view;
}

json resize_of_feeder(const FeederCpu& cpu) {
  json resources = {{"requests", {{"cpu", std::to_string(cpu.request_millicores) + "m"}}}};
  if (cpu.limit_millicores > 0) resources["limits"] = {{"cpu", std::to_string(cpu.limit_millicores) + "m"}};
  json feeder = {{"name", kFeederContainer}, {"resources", std::move(resources)}};
  return {{"spec", {{"initContainers", json::array({std::move(feeder)})}}}};
}

}  // namespace sluice::api
