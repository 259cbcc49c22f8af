#include "operator/observe/quotas.h"

#include <nlohmann/json.hpp>

#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using api::ContainerResources;
using control::testing::shared;
using nlohmann::json;

kube::Store::Objects quotas(const std::vector<const char*>& statuses) {
  kube::Store::Objects objects;
  for (const char* status : statuses)
    objects[{"team", "q" + std::to_string(objects.size())}] = shared({{"status", json::parse(status)}});
  return objects;
}

constexpr std::int64_t kGibibyteOfQuota = std::int64_t{1} << 30;
constexpr ContainerResources kSmall{500, kGibibyteOfQuota, 0, 0};
constexpr ContainerResources kLarge{2000, 2 * kGibibyteOfQuota, 4000, 8 * kGibibyteOfQuota};

std::optional<std::int64_t> for_workers(const std::vector<const char*>& statuses) {
  const auto seen = view_quotas(quotas(statuses), {{"team", {1000, {kLarge, kSmall}}}}, {}, {});
  if (seen.empty()) return std::nullopt;
  CHECK(seen.size() == 1);
  CHECK(seen[0].name == "team");
  return seen[0].worker_millicores;
}

TEST_CASE("data workers may hold what they hold and what the quota has left") {
  struct Case {
    std::vector<const char*> statuses;
    std::optional<std::int64_t> want;
  };
  const Case test =
      GENERATE(Case{{R"({"hard": {"requests.cpu": "10"}, "used": {"requests.cpu": "4500m"}})"}, 6500},
               Case{{R"({"hard": {"cpu": 10}, "used": {"cpu": "9"}})"}, 2000},
               Case{{R"({"hard": {"requests.cpu": "10"}})"}, 11000},
               Case{{R"({"hard": {"requests.cpu": "10"}, "used": {"requests.cpu": "12"}})"}, 1000},
               Case{{R"({"hard": {"pods": "7"}, "used": {"pods": "3"}})"}, 3000},
               Case{{R"({"hard": {"count/pods": "7"}, "used": {"count/pods": "6"}})"}, 1500},
               Case{{R"({"hard": {"requests.cpu": "10"}})", R"({"hard": {"pods": "2"}})"}, 2000},
               // By the worker that takes most per core: 500m of each Gi, and only the large one has limits.
               Case{{R"({"hard": {"requests.memory": "10Gi"}, "used": {"requests.memory": "7Gi"}})"}, 1000 + 1500},
               Case{{R"({"hard": {"memory": "1536Mi"}})"}, 1000 + 750},
               Case{{R"({"hard": {"limits.cpu": "10"}, "used": {"limits.cpu": "4"}})"}, 1000 + 3000},
               Case{{R"({"hard": {"limits.memory": "4Gi"}})"}, 1000 + 1000},
               Case{{R"({"hard": {"limits.memory": "4Gi", "requests.cpu": "500m"}})"}, 1000 + 500},
               Case{{R"({"hard": {"requests.storage": "1Gi"}})"}, std::nullopt}, Case{{"{}"}, std::nullopt});
  CHECK(for_workers(test.statuses) == test.want);
}

TEST_CASE("a quota whose scopes leave the workers out bounds none") {
  struct Row {
    const char* spec;
    std::set<std::string> classes;
    bool want;  // it bounds
  };
  const Row row = GENERATE(
      Row{"{}", {""}, true}, Row{R"({"scopes": ["NotTerminating", "NotBestEffort"]})", {""}, true},
      Row{R"({"scopes": ["Terminating"]})", {""}, false}, Row{R"({"scopes": ["BestEffort"]})", {""}, false},
      Row{R"({"scopes": ["PriorityClass"]})", {""}, false}, Row{R"({"scopes": ["PriorityClass"]})", {"low"}, true},
      Row{R"({"scopes": ["CrossNamespacePodAffinity"]})", {"low"}, false},
      Row{R"({"scopes": ["OneThatWeDoNotKnow"]})", {""}, true},
      Row{R"({"scopeSelector": {"matchExpressions": [
             {"scopeName": "PriorityClass", "operator": "In", "values": ["gpu"]}]}})",
          {"low"},
          false},
      Row{R"({"scopeSelector": {"matchExpressions": [
             {"scopeName": "PriorityClass", "operator": "In", "values": ["gpu", "low"]}]}})",
          {"", "low"},
          true},
      Row{R"({"scopeSelector": {"matchExpressions": [
             {"scopeName": "PriorityClass", "operator": "NotIn", "values": ["gpu"]}]}})",
          {"low"},
          true},
      Row{R"({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}})",
          {"low"},
          false});
  INFO(row.spec);
  const kube::Store::Objects objects = {
      {{"team", "q"},
       shared({{"spec", json::parse(row.spec)}, {"status", json::parse(R"({"hard": {"requests.cpu": "10"}})")}})}};
  CHECK(view_quotas(objects, {{"team", {1000, {kSmall}, row.classes}}}, {}, {}).empty() != row.want);
}

TEST_CASE("a quota of what no worker asks for bounds none") {
  const auto seen = view_quotas(quotas({R"({"hard": {"limits.cpu": "1", "requests.memory": "1Gi"}})"}),
                                {{"team", {1000, {ContainerResources{500, 0, 0, 0}}}}}, {}, {});
  CHECK(seen.empty());
}

TEST_CASE("a quota of a namespace without jobs bounds no job") {
  CHECK(view_quotas(quotas({R"({"hard": {"requests.cpu": "1"}})"}), {{"other", {}}}, {}, {}).empty());
}

TEST_CASE("a namespace with jobs has its budget, with a quota and without") {
  struct Row {
    const char* situation;
    std::vector<const char*> statuses;
    std::optional<std::int64_t> want_millicores;
  };
  for (const Row& row :
       {Row{"no quota", {}, std::nullopt}, Row{"a quota", {R"({"hard": {"requests.cpu": "10"}})"}, 11000},
        Row{"a quota of other things", {R"({"hard": {"requests.storage": "1Gi"}})"}, std::nullopt}}) {
    CAPTURE(row.situation);
    const auto seen =
        view_quotas(quotas(row.statuses), {{"team", {1000, {kSmall}}}}, {{"team", 2.5}, {"empty", 1}}, {});
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].name == "team");
    CHECK(seen[0].worker_millicores == row.want_millicores);
    CHECK(seen[0].budget_per_hour == 2.5);
  }
}

TEST_CASE("a cap on cores counts with what is held, beside quotas") {
  struct Row {
    const char* situation;
    std::vector<const char*> statuses;
    control::NamespaceCaps cap;
    std::optional<std::int64_t> want;
  };
  const Row rows[] = {
      {"no cap on cores", {}, {.weight = 1}, std::nullopt},
      {"alone", {}, {.worker_cores = 2.5}, 2500},
      {"less than is held", {}, {.worker_cores = 0.5}, 500},
      {"nothing may be held", {}, {.worker_cores = 0.0}, 0},
      {"tighter than the quota", {R"({"hard": {"requests.cpu": "10"}})"}, {.worker_cores = 4.0}, 4000},
      {"wider than the quota", {R"({"hard": {"requests.cpu": "10"}})"}, {.worker_cores = 40.0}, 11000},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const auto seen = view_quotas(quotas(row.statuses), {{"team", {1000, {kSmall}}}}, {}, {{"team", row.cap}});
    REQUIRE(seen.size() == (row.want ? 1 : 0));
    if (row.want) CHECK(seen[0].worker_millicores == row.want);
  }
}

}  // namespace
}  // namespace sluice::observe
