#include "operator/api/limit_range.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

constexpr std::int64_t kMi = std::int64_t{1} << 20;

TEST_CASE("a LimitRange puts in what a container does not say, and nothing else") {
  struct Row {
    const char* situation;
    const char* limits;
    ContainerResources written, want;
  };
  const char* const defaults = R"([{"type": "Container", "default": {"cpu": "2", "memory": "512Mi"},
                                    "defaultRequest": {"cpu": "100m", "memory": "256Mi"}, "max": {"memory": "64Mi"}}])";
  const Row row = GENERATE_COPY(
      Row{"nothing is said", defaults, {}, {100, 256 * kMi, 2000, 512 * kMi}},
      Row{"all is said", defaults, {1, 2, 3, 4}, {1, 2, 3, 4}},
      Row{"only the CPU request is said", defaults, {500}, {500, 256 * kMi, 2000, 512 * kMi}},
      Row{"limits of whole pods put in nothing", R"([{"type": "Pod", "default": {"cpu": "2"}}])", {500}, {500}},
      Row{"no limits", "[]", {500}, {500}},
      Row{"nonsense", R"([1, {"type": "Container", "default": 3}])", {500}, {500}},
      Row{"the first of two rules counts",
          R"([{"type": "Container", "defaultRequest": {"memory": "1Mi"}},
              {"type": "Container", "defaultRequest": {"memory": "2Mi"}}])",
          {},
          {0, kMi, 0, 0}});
  CAPTURE(row.situation);
  const json object = {{"spec", {{"limits", json::parse(row.limits)}}}};
  CHECK(LimitRange(object).filled_in(row.written) == row.want);
}

}  // namespace
}  // namespace sluice::api
