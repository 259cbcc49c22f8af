#include "operator/observe/pod_view.h"

#include <nlohmann/json.hpp>

#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using nlohmann::json;

TEST_CASE("a pod without any field belongs to no job, is on no node, and reserves nothing") {
  for (const char* text :
       {"{}", R"({"metadata":{"ownerReferences":"x","labels":[]},"spec":{"containers":{}},"status":7})"}) {
    const PodView view = view_pod(json::parse(text));
    CHECK(view.controller_uid.empty());
    CHECK(view.node.empty());
    CHECK(view.request_millicores == 0);
    CHECK_FALSE((view.is_trainer || view.is_worker || view.finished || view.leaving));
  }
}

TEST_CASE("a view is made once per state of an object") {
  static int made = 0;
  made = 0;
  Views<std::string> views([](const json& object) {
    ++made;
    return object.at("x").get<std::string>();
  });
  const auto object = [](const char* x) { return control::testing::shared({{"x", x}}); };
  kube::Store::Objects objects = {{{"ns", "a"}, object("1")}, {{"ns", "c"}, object("3")}};
  CHECK(views.of(objects).size() == 2);
  CHECK(views.of(objects).at({"ns", "c"}).view == "3");
  CHECK(made == 2);
  objects[{"ns", "b"}] = object("2");
  objects[{"ns", "c"}] = object("4");
  CHECK(views.of(objects).at({"ns", "b"}).view == "2");
  CHECK(views.of(objects).at({"ns", "c"}).view == "4");
  CHECK(made == 4);
  objects.erase({"ns", "a"});
  CHECK(views.of(objects).size() == 2);
  CHECK(made == 4);
  CHECK(views.of({}).empty());
}

}  // namespace
}  // namespace sluice::observe
