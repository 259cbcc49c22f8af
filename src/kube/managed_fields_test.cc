#include "src/kube/managed_fields.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/kube/resource.h"

namespace sluice::kube {
namespace {

std::string cut(const std::string& line) {
  std::string shortened;
  return std::string(cut_managed_fields(line, shortened));
}

TEST_CASE("managedFields are cut out wherever they stand in metadata") {
  struct Case {
    const char* line;
    const char* want;
  };
  const Case cases[] = {
      {R"({"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","managedFields":[{"a":"]}\""},[]],"uid":"u"}}})",
       R"({"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","uid":"u"}}})"},
      {R"({"type":"ADDED","object":{"metadata":{"name":"a","managedFields":[]},"spec":{}}})",
       R"({"type":"ADDED","object":{"metadata":{"name":"a"},"spec":{}}})"},
      {R"({"object":{"metadata":{"managedFields":[1]}},"type":"ADDED"})",
       R"({"object":{"metadata":{}},"type":"ADDED"})"},
      {R"({"object":{"n":-1.5e3,"b":true,"metadata":{"managedFields":{"x":1},"z":null}}})",
       R"({"object":{"n":-1.5e3,"b":true,"metadata":{"z":null}}})"},
  };
  for (const Case& c : cases) {
    INFO(c.line);
    CHECK(cut(c.line) == c.want);
  }
}

TEST_CASE("what is no object's metadata.managedFields stays") {
  for (const char* line : {
           "",
           "{}",
           "nonsense",
           R"({"object":{"spec":{"managedFields":[1]}}})",
           R"({"object":{"metadata":{"annotations":{"managedFields":"x"}}}})",
           R"({"object":{"metadata":{"name":"\"managedFields\":[1]"}}})",
           R"({"object":{"metadata":{"managedFields":null,"name":"a"}}})",
           R"({"object":{"metadata":{"managedFields":[1])",
           R"({"object":{"metadata":[{"managedFields":[1]}]}})",
           R"({"object": {"metadata": {"managedFields": [1]}}})",
           R"({"metadata":{"managedFields":[1]}})",
       }) {
    CHECK(cut(line) == line);
  }
}

}  // namespace
}  // namespace sluice::kube
