#include "src/kube/fake/cel.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::kube::fake {
namespace {

// "true", "false", or "error".
std::string outcome(const std::string& rule, const Json& self, const Json* old_self = nullptr) {
  const auto expression = CelExpression::parse(rule);
  INFO(rule);
  REQUIRE(expression.ok());
  const auto holds = expression->holds(self, old_self);
  return !holds.ok() ? "error" : *holds ? "true" : "false";
}

TEST_CASE("rules over an object") {
  const Json self = {{"name", "sample"},
                     {"min", 2},
                     {"max", 8},
                     {"limits", {{"cpu", "500m"}}},
                     {"requests", {{"cpu", 1}}},
                     {"list", {{{"name", "a"}}, {{"name", "sluice-b"}}}}};
  const auto [rule, wanted] = GENERATE(table<std::string, std::string>({
      {"self.min <= self.max", "true"},
      {"self.min == self.max || self.min != self.max", "true"},
      {"!(self.min > self.max) && size(self.name) == 6", "true"},
      {"size(self.list) >= 3", "false"},
      {"has(self.limits) && 'cpu' in self.limits", "true"},
      {"has(self.absent)", "false"},
      {"self.absent", "error"},
      {"self.absent || self.min == 2", "true"},
      {"self.min == 2 || self.absent", "true"},
      {"self.min == 3 || self.absent", "error"},
      {"self.min == 3 && self.absent", "false"},
      {"self.name in ['sample', \"other\"]", "true"},
      {"self.name in ['other']", "false"},
      {"self.name < 3", "error"},
      {"self.name.matches('^s[a-z]*$')", "true"},
      {"self.list.exists(c, c.name.startsWith('sluice-'))", "true"},
      {"self.list.exists(c, c.name == 'c')", "false"},
      {"self.list.exists(c, c.absent == 'c')", "error"},
      {"quantity(string(self.limits['cpu'])).compareTo(quantity(string(self.requests['cpu']))) >= 0", "false"},
      {"quantity('1Mi').compareTo(quantity('1048576')) == 0", "true"},
      {"quantity('1Mi').add(quantity('1Ki')).compareTo(quantity('1025Ki')) == 0", "true"},
      {"quantity('1Mi').add('1Ki').compareTo(quantity('1025Ki')) == 0", "error"},
      {"quantity('8E').add(quantity('8E')).add(quantity('8E')).compareTo(quantity('1')) > 0", "error"},
      {"quantity('half').compareTo(quantity('1')) == 0", "error"},
      {"true", "true"},
  }));
  INFO(rule);
  CHECK(outcome(rule, self) == wanted);
}

TEST_CASE("a transition rule compares with the old value") {
  const auto rule = CelExpression::parse("self == oldSelf");
  REQUIRE(rule.ok());
  CHECK(rule->mentions_old_self());
  CHECK_FALSE(CelExpression::parse("self == 1")->mentions_old_self());
  const Json one = 1;
  const Json two = 2;
  CHECK(*rule->holds(one, &one));
  CHECK_FALSE(*rule->holds(one, &two));
}

TEST_CASE("what is not known is refused, not passed over") {
  for (const char* rule : {"", "self.", "self +", "self.all(c, c)", "duration('1s')", "(self", "self ? 1 : 2", "'open",
                           "self['a'", "has(self"}) {
    INFO(rule);
    CHECK_FALSE(CelExpression::parse(rule).ok());
  }
}

}  // namespace
}  // namespace sluice::kube::fake
