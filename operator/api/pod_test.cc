#include "operator/api/pod.h"

#include <nlohmann/json.hpp>

#include "operator/api/pod_trim.h"

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

TEST_CASE("why a pod cannot start") {
  struct Case {
    const char* name;
    const char* status;
    const char* want_reason;
  };
  const Case test = GENERATE(
      Case{"no node has room", R"({"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]})",
           "Unschedulable"},
      Case{"a gate holds it", R"({"conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]})",
           ""},
      Case{"its image is not there", R"({"containerStatuses":[{"state":{"waiting":{"reason":"ErrImagePull"}}}]})",
           "ErrImagePull"},
      Case{"an init container's image is not there",
           R"({"initContainerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff"}}}]})", "ImagePullBackOff"},
      Case{"its program ends again and again",
           R"({"containerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]})", "CrashLoopBackOff"},
      Case{"it starts", R"({"containerStatuses":[{"state":{"waiting":{"reason":"PodInitializing"}}}]})", ""},
      Case{
          "it is ready",
          R"({"conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"state":{"waiting":{"reason":"ErrImagePull"}}}]})",
          ""},
      Case{"odd", R"({"containerStatuses":[7,{"state":[]}],"conditions":"x"})", ""});
  INFO(test.name);
  json pod = {{"metadata", {{"labels", {{"sluice.dev/component", "worker"}}}}}, {"status", json::parse(test.status)}};
  const auto reason = [](const json& object) { return Pod(object).hindrance().value_or(Hindrance{}).reason; };
  CHECK(reason(pod) == test.want_reason);
  trim_pod(pod);
  CHECK(reason(pod) == test.want_reason);
}

TEST_CASE("the scheduling gate at which a pod waits") {
  json pod = {{"spec", {{"schedulingGates", json::array({{{"name", "kueue.x-k8s.io/admission"}}})}}}};
  CHECK(Pod(pod).gate() == "kueue.x-k8s.io/admission");
  trim_pod(pod);
  CHECK(Pod(pod).gate() == "kueue.x-k8s.io/admission");
  for (const char* none : {R"({})", R"({"schedulingGates":[]})", R"({"schedulingGates":"x"})"}) {
    const json open = {{"spec", json::parse(none)}};
    CHECK(Pod(open).gate().empty());
  }
}

TEST_CASE("what a pod reserves") {
  struct Case {
    const char* name;
    const char* spec;
    std::int64_t want_millicores;
  };
  const Case test = GENERATE(
      Case{"containers add up",
           R"({"containers":[{"resources":{"requests":{"cpu":"1"}}},{"resources":{"requests":{"cpu":"250m"}}},{}]})",
           1250},
      Case{
          "an init container counts only above the rest",
          R"({"initContainers":[{"resources":{"requests":{"cpu":"2"}}}],"containers":[{"resources":{"requests":{"cpu":"1"}}}]})",
          2000},
      Case{"a native sidecar runs beside the containers",
           R"({"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"500m"}}}],
               "containers":[{"resources":{"requests":{"cpu":"1"}}}]})",
           1500},
      Case{"an init container after a sidecar runs beside it",
           R"({"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"500m"}}},
               {"resources":{"requests":{"cpu":"2"}}}],"containers":[{"resources":{"requests":{"cpu":"1"}}}]})",
           2500},
      Case{"overhead comes on top",
           R"({"overhead":{"cpu":"100m"},"containers":[{"resources":{"requests":{"cpu":1}}}]})", 1100},
      Case{"a pod-level request replaces the sum",
           R"({"resources":{"requests":{"cpu":"3"}},"containers":[{"resources":{"requests":{"cpu":"1"}}}]})", 3000});
  INFO(test.name);
  const json pod = {{"spec", json::parse(test.spec)}};
  CHECK(Pod(pod).request_millicores() == test.want_millicores);
}

}  // namespace
}  // namespace sluice::api
