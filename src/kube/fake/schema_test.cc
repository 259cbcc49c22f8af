// What the conformance suite does not reach: keywords that are not known, and values at the edges of bounds.
#include "src/kube/fake/schema.h"

#include "src/base/testing/catch.h"

namespace sluice::kube::fake {
namespace {

// The fields that are complained of; without the remark, about no field, that some rules could then not be tried.
std::vector<std::string> fields(const Json& openapi, const Json& value) {
  const auto schema = Schema::read(openapi);
  REQUIRE(schema.ok());
  std::vector<std::string> found;
  // "<nil>" says that rules were not evaluated, which the conformance suite checks.
  for (const Violation& violation : (*schema)->validate(value, nullptr))
    if (violation.field != "<nil>") found.push_back(violation.field);
  return found;
}

TEST_CASE("values at the edges of their bounds") {
  const Json openapi = Json::parse(R"({"type": "object", "properties": {
    "n": {"type": "integer", "minimum": 1, "maximum": 3},
    "t": {"type": "string", "minLength": 1, "maxLength": 2},
    "l": {"type": "array", "minItems": 1, "maxItems": 2},
    "m": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "boolean"}},
    "d": {"type": "string", "format": "date-time"},
    "q": {"x-kubernetes-int-or-string": true}}})");
  const auto [value, wanted] = GENERATE(table<std::string, std::vector<std::string>>({
      {R"({"n": 1, "t": "ä", "l": [1], "m": {"a": true}, "d": "2026-01-01T00:00:00Z", "q": 1})", {}},
      {R"({"n": 3, "t": "äö", "l": [1, 2], "q": "1"})", {}},
      {R"({"n": 0})", {"n"}},
      {R"({"n": 4})", {"n"}},
      {R"({"t": ""})", {"t"}},
      {R"({"t": "abc"})", {"t"}},
      {R"({"l": []})", {"l"}},
      {R"({"l": [1, 2, 3]})", {"l"}},
      {R"({"m": {"a": true, "b": true}})", {"m"}},
      {R"({"m": {"a": 1}})", {"m.a"}},
      {R"({"d": "yesterday"})", {"d"}},
      {R"({"q": true})", {"q"}},
  }));
  INFO(value);
  CHECK(fields(openapi, Json::parse(value)) == wanted);
}

TEST_CASE("a schema with a keyword that would not be applied is refused") {
  CHECK_FALSE(Schema::read({{"oneOf", Json::array()}}).ok());
  CHECK_FALSE(Schema::read({{"x-kubernetes-validations", {{{"rule", "self.all(x, x)"}}}}}).ok());
}

}  // namespace
}  // namespace sluice::kube::fake
