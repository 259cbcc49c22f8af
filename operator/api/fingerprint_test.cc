#include "operator/api/fingerprint.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

TEST_CASE("a fingerprint tells values apart, not the order of their members, and is fit for a label") {
  CHECK(fingerprint(json::parse(R"({"a":1,"b":2})")) == fingerprint(json::parse(R"({"b":2,"a":1})")));
  CHECK(fingerprint({{"a", 1}}) != fingerprint({{"a", 2}}));
  CHECK(fingerprint(json::object()).size() == 16);
  CHECK(fingerprint("\xff").size() == 16);  // no UTF-8
}

TEST_CASE("the fingerprint of an array needs no array") {
  const json image = "pytorch", arguments = {"--epochs", 3}, none;
  CHECK(fingerprint_of_array({&image, &arguments, &none}) == fingerprint(json::array({image, arguments, none})));
  CHECK(fingerprint_of_array({&none}) == fingerprint(json::array({none})));
}

}  // namespace
}  // namespace sluice::api
