#include "operator/api/object.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

TEST_CASE("fields of objects that are not as expected are the fallback") {
  const json object = json::parse(R"({"a":{"b/c":5,"t":"x","f":true},"l":[]})");
  CHECK(integer_field(object, "/a/b~1c") == 5);
  CHECK(integer_field(object, "/a/t", 7) == 7);
  CHECK(text_field(object, "/a/b~1c", "none") == "none");
  CHECK(text_field(object, "/l/x") == "");
  CHECK(boolean_field(object, "/a/f"));
  CHECK(field(json(), "/a/b").is_null());
}

TEST_CASE("a child belongs to an owner by uid, and only as its controller") {
  struct Case {
    const char* name;
    const char* reference;
    bool want;
  };
  const Case test = GENERATE(Case{"its controller", R"({"uid":"u1","controller":true})", true},
                             Case{"an owner that does not control it", R"({"uid":"u1","controller":false})", false},
                             Case{"a namesake", R"({"uid":"u2","name":"vision","controller":true})", false},
                             Case{"no reference at all", R"(7)", false});
  INFO(test.name);
  const json owner = {{"metadata", {{"name", "vision"}, {"uid", "u1"}}}};
  const json child = {{"metadata", {{"ownerReferences", {json::parse(test.reference)}}}}};
  CHECK(Object(child).controlled_by(Object(owner)) == test.want);
}

}  // namespace
}  // namespace sluice::api
