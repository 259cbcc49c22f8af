#include "operator/fault_simulation/template_damage.h"

#include <set>

#include "operator/fault_simulation/fault_plan.h"
#include "operator/fault_simulation/workload.h"
#include "src/base/testing/catch.h"

namespace sluice::simulation {
namespace {

using nlohmann::json;

const json kNothing(json::value_t::discarded);

TEST_CASE("a damage replaces, leaves out or repeats, and does nothing where its place is gone") {
  struct Case {
    const char* why;
    const char* place;
    json value;
    int times;
    const char* want;
  };
  const Case cases[] = {
      {"replaces a member", "/spec/a", 7, 1, R"({"spec": {"a": 7, "list": [1, 2]}})"},
      {"replaces an element", "/spec/list/0", "x", 1, R"({"spec": {"a": {"b": 1}, "list": ["x", 2]}})"},
      {"adds a member", "/spec/c", true, 1, R"({"spec": {"a": {"b": 1}, "list": [1, 2], "c": true}})"},
      {"leaves out a member", "/spec/a/b", kNothing, 1, R"({"spec": {"a": {}, "list": [1, 2]}})"},
      {"leaves out an element", "/spec/list/0", kNothing, 1, R"({"spec": {"a": {"b": 1}, "list": [2]}})"},
      {"puts an element behind", "/spec/list/-", 3, 1, R"({"spec": {"a": {"b": 1}, "list": [1, 2, 3]}})"},
      {"numbers many",
       "/spec/new/-",
       {{"name", "v"}},
       2,
       R"({"spec": {"a": {"b": 1}, "list": [1, 2], "new": [{"name": "v-0"}, {"name": "v-1"}]}})"},
      {"finds no place", "/spec/gone/0", 7, 1, R"({"spec": {"a": {"b": 1}, "list": [1, 2]}})"},
      {"finds no element", "/spec/list/9", kNothing, 1, R"({"spec": {"a": {"b": 1}, "list": [1, 2]}})"},
      {"finds no list", "/spec/a/b/-", 7, 1, R"({"spec": {"a": {"b": 1}, "list": [1, 2]}})"},
      {"replaces all", "", "x", 1, R"("x")"},
      {"leaves nothing", "", kNothing, 1, "null"}};
  for (const Case& c : cases) {
    INFO(c.why);
    json object = json::parse(R"({"spec": {"a": {"b": 1}, "list": [1, 2]}})");
    damage_template({"", json::json_pointer(c.place), c.value, c.times}, object);
    CHECK(object == json::parse(c.want));
  }
}

TEST_CASE("every kind of damage is drawn, for every template that may be odd, and the same for the same seed") {
  const auto& templates = workload("templates").value()->odd_templates;
  REQUIRE(templates.size() == 4);
  std::set<std::string> kinds;
  for (const auto& [name, pod_template] : templates) {
    Random random(7), again(7);
    for (int i = 0; i < 200; ++i) {
      json damaged = pod_template;
      for (const TemplateDamage& damage : draw_damages(random, name, pod_template)) {
        kinds.insert(damage.value.is_discarded() ? "left out" : damage.times > 1 ? "many" : damage.value.type_name());
        damage_template(damage, damaged);
      }
      json same = pod_template;
      for (const TemplateDamage& damage : draw_damages(again, name, pod_template)) damage_template(damage, same);
      CHECK(damaged == same);
    }
  }
  CHECK(kinds == std::set<std::string>{"array", "boolean", "left out", "many", "null", "number", "object", "string"});
}

TEST_CASE("plans damage the templates of their workload alone") {
  int damaged = 0, stored_before = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const FaultPlan plan = random_plan(seed);
    if (plan.damages.empty()) continue;
    ++damaged;
    stored_before += plan.stored_before;
    for (const TemplateDamage& damage : plan.damages)
      CHECK(workload(plan.workload).value()->odd_templates.contains(damage.object));
  }
  CHECK(damaged > 20);
  CHECK(stored_before > 5);
  CHECK(stored_before < damaged);
}

}  // namespace
}  // namespace sluice::simulation
