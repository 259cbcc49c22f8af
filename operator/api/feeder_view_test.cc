#include "operator/api/feeder_view.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;
using Resize = FeederView::Resize;

json cpu(const char* request, const char* limit) {
  json resources = {{"requests", {{"cpu", request}, {"memory", "64Mi"}}}};
  if (limit != nullptr) resources["limits"] = {{"cpu", limit}};
  return resources;
}

json pod(const json& wanted, const json& in_force) {
  json object = {{"spec", {{"initContainers", {{{"name", "sluice-bundle"}}, {{"name", "sluice-feeder"}}}}}},
                 {"status", {{"qosClass", "Burstable"}}}};
  object["spec"]["initContainers"][1]["resources"] = wanted;
  if (!in_force.is_null())
    object["status"]["initContainerStatuses"] = {{{"name", "sluice-feeder"}, {"resources", in_force}}};
  return object;
}

TEST_CASE("a feeder's CPU is read from the pod's spec and status") {
  const FeederView view = view_feeder(pod(cpu("2", "8"), cpu("250m", nullptr))).value();
  CHECK(view.wanted == FeederCpu{2000, 8000});
  CHECK(view.in_force == FeederCpu{250, 0});
  CHECK(view.resize == Resize::kUnderWay);
  CHECK(view.reserved_millicores() == 2000);
}

TEST_CASE("a kubelet that says nothing has done what is wanted") {
  const FeederView view = view_feeder(pod(cpu("2", "8"), json())).value();
  CHECK(view.in_force == view.wanted);
  CHECK(view.resize == Resize::kDone);
}

TEST_CASE("a feeder that runs on a node of an older kubelet cannot be resized") {
  json object = pod(cpu("250m", nullptr), json());
  CHECK(view_feeder(object)->can_be_resized());
  json& status = object["status"]["initContainerStatuses"] = json::parse(R"([{"name": "sluice-feeder"}])");
  CHECK(view_feeder(object)->can_be_resized());  // it has not started
  status[0]["started"] = true;
  CHECK_FALSE(view_feeder(object)->can_be_resized());
  status[0]["resources"] = cpu("250m", nullptr);
  CHECK(view_feeder(object)->can_be_resized());
}

TEST_CASE("a rounding of the cgroup is no resize under way") {
  CHECK(view_feeder(pod(cpu("253m", "500m"), cpu("250m", "500m")))->resize == Resize::kDone);
}

TEST_CASE("a resize that waits or cannot be done says so, and reserves what it may still get") {
  struct Case {
    const char* reason;
    Resize resize;
    std::int64_t reserved;
  };
  const Case test = GENERATE(Case{"Deferred", Resize::kDeferred, 2000}, Case{"Infeasible", Resize::kInfeasible, 250});
  json object = pod(cpu("2", "8"), cpu("250m", "250m"));
  object["status"]["conditions"] = {
      {{"type", "Ready"}, {"status", "True"}},
      {{"type", "PodResizePending"}, {"status", "True"}, {"reason", test.reason}, {"message", "not enough cpu"}}};
  const FeederView view = view_feeder(object).value();
  CHECK(view.resize == test.resize);
  CHECK(view.problem == "not enough cpu");
  CHECK(view.reserved_millicores() == test.reserved);
}

TEST_CASE("the QoS class is the pod's") {
  json object = pod(cpu("1", "1"), json());
  CHECK(view_feeder(object)->qos_class == FeederView::QosClass::kBurstable);
  object["status"]["qosClass"] = "Guaranteed";
  CHECK(view_feeder(object)->qos_class == FeederView::QosClass::kGuaranteed);
  CHECK(view_feeder(object)->can_be_resized());
  json whole = object;
  whole["spec"]["resources"] = {{"limits", {{"cpu", "2"}}}};
  CHECK_FALSE(view_feeder(whole)->can_be_resized());
  object["status"]["qosClass"] = "BestEffort";
  CHECK(view_feeder(object)->qos_class == FeederView::QosClass::kBestEffort);
  CHECK_FALSE(view_feeder(object)->can_be_resized());
}

TEST_CASE("a pod without a feeder, or one that is no pod, has no view") {
  for (const char* text :
       {"{}", R"({"spec":{"initContainers":{}}})", R"({"spec":{"initContainers":[7,{"name":"x"}]}})"})
    CHECK_FALSE(view_feeder(json::parse(text)).has_value());
}

}  // namespace
}  // namespace sluice::api
