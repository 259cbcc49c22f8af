#include "operator/act/objects.h"

#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace sluice::act
