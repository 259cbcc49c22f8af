#include "operator/api/pod_template.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

json pod_template() {
  return json::parse(R"({
    "metadata": {"labels": {"team": "vision"}},
    "spec": {"restartPolicy": "Never", "volumes": [{"name": "data", "emptyDir": {}}],
             "containers": [{"name": "trainer", "image": "i", "env": [{"name": "A", "value": "1"}],
                             "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}})");
}

TEST_CASE("a field of a pod template that has another shape is refused by its name") {
  struct Case {
    const char* field;  // a JSON pointer
    const char* value;
    const char* want;
  };
  const Case test = GENERATE(
      Case{"/spec/initContainers", R"("x")", "t.spec.initContainers must be a list of objects, each with a name"},
      Case{"/spec/containers", R"([])", "t.spec.containers must hold at least one container"},
      Case{"/spec/containers", R"({"name":"x"})", "t.spec.containers must be a list of objects"},
      Case{"/spec/containers/0/env", R"({"A":"B"})", "t.spec.containers[0].env must be a list of objects"},
      Case{"/spec/containers/0/volumeMounts", R"(["data"])", "t.spec.containers[0].volumeMounts must be"},
      Case{"/spec/containers/0/command", R"("python train.py")",
           "t.spec.containers[0].command must be a list of texts"},
      Case{"/spec/initContainers", R"([{"name":"a","env":[7]}])", "t.spec.initContainers[0].env must be"},
      Case{"/spec/volumes", R"({"a":{}})", "t.spec.volumes must be a list of objects, each with a name"},
      Case{"/spec/nodeSelector", R"({"gpu":1})", "t.spec.nodeSelector must be an object whose values are texts"},
      Case{"/spec/securityContext", R"([])", "t.spec.securityContext must be an object"},
      Case{"/metadata/labels", R"({"gpu":true})", "t.metadata.labels must be an object whose values are texts"},
      Case{"/metadata", R"(7)", "t.metadata must be an object"}, Case{"/spec", R"([])", "t.spec must be an object"});
  INFO(test.field << " = " << test.value);
  json changed = pod_template();
  changed[json::json_pointer(test.field)] = json::parse(test.value);
  const Result<void> checked = check_pod_template(changed, "t");
  REQUIRE_FALSE(checked.ok());
  CHECK(checked.error().code() == ErrorCode::kInvalidArgument);
  CHECK_THAT(checked.error().message(), Catch::StartsWith(test.want));
}

TEST_CASE("a pod template in its right shape passes; a field that is null counts as absent") {
  CHECK(check_pod_template(pod_template(), "t").ok());
  for (const char* field : {"/metadata", "/spec/volumes", "/spec/containers/0/env", "/spec/containers/0/volumeMounts",
                            "/spec/initContainers"}) {
    INFO(field);
    json changed = pod_template();
    changed[json::json_pointer(field)] = nullptr;
    CHECK(check_pod_template(changed, "t").ok());
  }
}

}  // namespace
}  // namespace sluice::api
