#include "operator/act/objects.h"

#include <nlohmann/json.hpp>

#include "operator/observe/fields.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using nlohmann::json;

TEST_CASE("an object holds what is desired if the API server has only added to it") {
  struct Case {
    const char* name;
    const char* observed;
    const char* desired;
    bool want;
  };
  const Case test = GENERATE(Case{"equal", R"({"a":1})", R"({"a":1})", true},
                             Case{"defaults were added", R"({"a":1,"b":{"c":2}})", R"({"a":1})", true},
                             Case{"and inside list elements", R"({"l":[{"a":1,"b":2}]})", R"({"l":[{"a":1}]})", true},
                             Case{"a value differs", R"({"a":2})", R"({"a":1})", false},
                             Case{"a member is missing", R"({})", R"({"a":1})", false},
                             Case{"a list has more", R"({"l":[1,2]})", R"({"l":[1]})", false},
                             Case{"a list is in another order", R"({"l":[2,1]})", R"({"l":[1,2]})", false},
                             Case{"an empty object was dropped", R"({})", R"({"e":{}})", true},
                             Case{"an empty list was dropped", R"({})", R"({"e":[]})", true},
                             Case{"another type", R"({"a":"1"})", R"({"a":1})", false});
  INFO(test.name);
  CHECK(holds(json::parse(test.observed), json::parse(test.desired)) == test.want);
}

TEST_CASE("nulls vanish, wherever they are") {
  CHECK(without_nulls(json::parse(R"({"a":null,"b":[{"c":null,"d":1}],"e":{"f":null}})")) ==
        json::parse(R"({"b":[{"d":1}],"e":{}})"));
}

TEST_CASE("a template's hash is stable, differs between templates, and is a label's value") {
  CHECK(template_hash(json::parse(R"({"a":1,"b":2})")) == template_hash(json::parse(R"({"b":2,"a":1})")));
  CHECK(template_hash({{"a", 1}}) != template_hash({{"a", 2}}));
  CHECK(template_hash(json::object()).size() == 16);
}

TEST_CASE("fields of objects that are not as expected are the fallback") {
  const json object = json::parse(R"({"a":{"b/c":5,"t":"x","f":true},"l":[]})");
  CHECK(observe::integer_field(object, "/a/b~1c") == 5);
  CHECK(observe::integer_field(object, "/a/t", 7) == 7);
  CHECK(observe::text_field(object, "/a/b~1c", "none") == "none");
  CHECK(observe::text_field(object, "/l/x") == "");
  CHECK(observe::boolean_field(object, "/a/f"));
  CHECK(observe::field(json(), "/a/b").is_null());
}

TEST_CASE("a child belongs to an owner by uid, and only as its controller") {
  const json owner = {{"metadata", {{"name", "vision"}, {"uid", "u1"}}}};
  json child = {{"metadata", child_metadata({{"metadata", {{"name", "vision"}, {"namespace", "n"}, {"uid", "u1"}}}},
                                            "v", "K", "child", "vision", "worker")}};
  CHECK(observe::controlled_by(child, owner));
  child["metadata"]["ownerReferences"][0]["controller"] = false;
  CHECK_FALSE(observe::controlled_by(child, owner));
  child["metadata"]["ownerReferences"][0] = {{"uid", "u2"}, {"name", "vision"}, {"controller", true}};
  CHECK_FALSE(observe::controlled_by(child, owner));
}

}  // namespace
}  // namespace sluice::act
