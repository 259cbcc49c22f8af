#include "operator/api/strategic_merge.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

TEST_CASE("a part of a pod template is merged as kubectl patch merges it") {
  struct Case {
    const char* title;
    const char* base;
    const char* patch;
    const char* want;
  };
  const Case test = GENERATE(
      Case{"objects, member by member", R"({"nodeSelector":{"a":"1","b":"2"}})",
           R"({"nodeSelector":{"b":"3","c":"4"}})", R"({"nodeSelector":{"a":"1","b":"3","c":"4"}})"},
      Case{"null removes", R"({"nodeSelector":{"a":"1","b":"2"},"x":1})", R"({"nodeSelector":{"a":null},"x":null})",
           R"({"nodeSelector":{"b":"2"}})"},
      Case{"null where there is nothing", R"({})", R"({"a":null,"b":{"c":null}})", R"({"b":{}})"},
      Case{"containers by name, the variables in them, too",
           R"({"containers":[{"name":"w","image":"i","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}]})",
           R"({"containers":[{"name":"w","env":[{"name":"B","value":"3"},{"name":"C","value":"4"}]}]})",
           R"({"containers":[{"name":"w","image":"i","env":[{"name":"A","value":"1"},{"name":"B","value":"3"},
               {"name":"C","value":"4"}]}]})"},
      Case{"new elements come last", R"({"initContainers":[{"name":"a"}]})", R"({"initContainers":[{"name":"b"}]})",
           R"({"initContainers":[{"name":"a"},{"name":"b"}]})"},
      Case{"mounts by their path", R"({"volumeMounts":[{"name":"v","mountPath":"/d","readOnly":true}]})",
           R"({"volumeMounts":[{"name":"w","mountPath":"/d"},{"name":"v","mountPath":"/e"}]})",
           R"({"volumeMounts":[{"name":"w","mountPath":"/d","readOnly":true},{"name":"v","mountPath":"/e"}]})"},
      Case{"a volume's source is replaced", R"({"volumes":[{"name":"v","emptyDir":{}}]})",
           R"({"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]})",
           R"({"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]})"},
      Case{"tolerations as a whole", R"({"tolerations":[{"key":"a"},{"key":"b"}]})", R"({"tolerations":[{"key":"c"}]})",
           R"({"tolerations":[{"key":"c"}]})"},
      Case{"an empty list of tolerations takes them away", R"({"tolerations":[{"key":"a"}]})", R"({"tolerations":[]})",
           R"({"tolerations":[]})"},
      Case{"a list where there is none", R"({})", R"({"volumes":[{"name":"v"}]})", R"({"volumes":[{"name":"v"}]})"},
      Case{"another type replaces", R"({"affinity":"x","volumes":{}})",
           R"({"affinity":{"a":1},"volumes":[{"name":"v"}]})", R"({"affinity":{"a":1},"volumes":[{"name":"v"}]})"});
  INFO(test.title);
  CHECK(strategic_merge(json::parse(test.base), json::parse(test.patch)) == json::parse(test.want));
}

}  // namespace
}  // namespace sluice::api
