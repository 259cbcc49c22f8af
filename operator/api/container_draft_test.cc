#include "operator/api/container_draft.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

TEST_CASE("a variable that is set takes the place of all of its name, one that is added of none") {
  json container = json::parse(R"({"env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"A"}]})");
  ContainerDraft draft(container);
  draft.set_variable("A", "new");
  draft.add_variable("B", "new");
  draft.add_index_variable("A");
  draft.add_variable("C", "new");
  CHECK(container == json::parse(R"({"env":[{"name":"A","value":"new"},{"name":"B","value":"2"},
                                            {"name":"A","value":"new"},{"name":"C","value":"new"}]})"));
}

TEST_CASE("a directory comes before those that the path of a container has") {
  struct Case {
    const char* name;
    const char* container;
    const char* want;  // the variables
  };
  const Case test = GENERATE(
      Case{"none", R"~({})~", R"~([{"name":"P","value":"/ours"}])~"},
      Case{"its own", R"~({"env":[{"name":"P","value":"/user"}]})~",
           R"~([{"name":"KEPT","value":"/user"},{"name":"P","value":"/ours:$(KEPT)"}])~"},
      Case{"a ConfigMap's", R"~({"env":[{"name":"P","valueFrom":{"configMapKeyRef":{"key":"k"}}}]})~",
           R"~([{"name":"KEPT","valueFrom":{"configMapKeyRef":{"key":"k"}}},{"name":"P","value":"/ours:$(KEPT)"}])~"},
      Case{"perhaps one of many", R"~({"envFrom":[{"configMapRef":{"name":"m"}}]})~",
           R"~([{"name":"P","value":"/ours:$(P)"}])~"});
  INFO(test.name);
  json container = json::parse(test.container);
  ContainerDraft(container).prepend_to_path("P", "/ours", "KEPT");
  CHECK(container["env"] == json::parse(test.want));
}

TEST_CASE("limits are left to a pod that has them") {
  json container;
  ContainerDraft draft(container);
  draft.leave_limits_to(json::parse(R"({"cpu":"1"})"));  // which has none yet
  draft.set_limits("2", "1Gi");
  draft.leave_limits_to(json());
  draft.leave_limits_to(json::parse(R"({"cpu":"1"})"));
  CHECK(container["resources"]["limits"] == json::parse(R"({"memory":"1Gi"})"));
}

TEST_CASE("the mounts of another container come without propagation, and go by their paths") {
  json container;
  ContainerDraft draft(container);
  draft.add_mount_like(json::parse(R"({"name":"a","mountPath":"/a","mountPropagation":"Bidirectional"})"), true);
  draft.mount("b", "/b", false);
  draft.mount("c", "/c", true);
  draft.replace_mounts_at("/b", json::parse(R"({"name":"other","mountPath":"/b"})"));
  draft.remove_mounts_at({"/c", "/not-there"});
  CHECK(container["volumeMounts"] == json::parse(R"([{"name":"a","mountPath":"/a","readOnly":true},
                                                     {"name":"other","mountPath":"/b"}])"));
}

TEST_CASE("references to the resources of a container are to the one that has them now") {
  json container = json::parse(R"({"name":"mine","env":[
      {"name":"A","valueFrom":{"resourceFieldRef":{"containerName":"other","resource":"limits.cpu"}}},
      {"name":"B","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}}]})");
  ContainerDraft(container).refer_to_own_resources();
  CHECK(container["env"][0]["valueFrom"]["resourceFieldRef"]["containerName"] == "mine");
  CHECK_FALSE(container["env"][1]["valueFrom"]["resourceFieldRef"].contains("containerName"));
}

}  // namespace
}  // namespace sluice::api
