#include "operator/api/container_bounds.h"

#include <nlohmann/json.hpp>

#include "operator/api/worker_size.h"
#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

kube::ObjectPointer range(const char* limits) {
  return std::make_shared<const json>(json{{"spec", {{"limits", json::parse(limits)}}}});
}

ContainerBounds bounds(const std::vector<const char*>& limits) {
  std::vector<kube::ObjectPointer> ranges;
  for (const char* each : limits) ranges.push_back(range(each));
  return ContainerBounds(ranges);
}

// Requests, then limits.
constexpr ContainerResources kBundle{10, 32 * kMebibyte, 250, 128 * kMebibyte};

TEST_CASE("a container of ours is fitted to the LimitRanges of its namespace") {
  struct Row {
    const char* situation;
    std::vector<const char*> limits;
    ContainerResources want;
    ContainerResources written = kBundle;
  };
  const Row row =
      GENERATE(Row{"there is none", {}, kBundle},
               Row{"it is within",
                   {R"([{"type": "Container", "min": {"cpu": "10m"}, "max": {"cpu": "1", "memory": "1Gi"}}])"},
                   kBundle},
               Row{"a least request",
                   {R"([{"type": "Container", "min": {"cpu": "100m", "memory": "64Mi"}}])"},
                   {100, 64 * kMebibyte, 250, 128 * kMebibyte}},
               Row{"a least request above the limit",
                   {R"([{"type": "Container", "min": {"cpu": "500m", "memory": "256Mi"}}])"},
                   {500, 256 * kMebibyte, 500, 256 * kMebibyte}},
               Row{"a most",
                   {R"([{"type": "Container", "max": {"cpu": "100m", "memory": "16Mi"}}])"},
                   {10, 16 * kMebibyte, 100, 16 * kMebibyte}},
               Row{"a ratio",
                   {R"([{"type": "Container", "maxLimitRequestRatio": {"cpu": "4", "memory": 2}}])"},
                   {63, 64 * kMebibyte, 250, 128 * kMebibyte}},
               Row{"a ratio of one and a half",
                   {R"([{"type": "Container", "maxLimitRequestRatio": {"cpu": "1500m"}}])"},
                   {167, 32 * kMebibyte, 250, 128 * kMebibyte}},
               Row{"a most and a ratio",
                   {R"([{"type": "Container", "max": {"cpu": "100m"}, "maxLimitRequestRatio": {"cpu": "2"}}])"},
                   {50, 32 * kMebibyte, 100, 128 * kMebibyte}},
               Row{"two LimitRanges: the tightest of each",
                   {R"([{"type": "Container", "min": {"cpu": "20m"}, "max": {"cpu": "200m"}}])",
                    R"([{"type": "Container", "min": {"cpu": "40m"}, "max": {"cpu": "300m"}}])"},
                   {40, 32 * kMebibyte, 200, 128 * kMebibyte}},
               Row{"a bound of whole pods", {R"([{"type": "Pod", "max": {"cpu": "1m"}}])"}, kBundle},
               Row{"nonsense", {R"([7, {"type": "Container", "min": 3, "max": {"cpu": "lots"}}])"}, kBundle},
               Row{"a limit that has to be said",
                   {R"([{"type": "Container", "max": {"cpu": "2"}, "maxLimitRequestRatio": {"memory": "2"}}])"},
                   {250, 64 * kMebibyte, 2000, 128 * kMebibyte},
                   {250, 64 * kMebibyte, 0, 0}},
               Row{"a default limit below the request",
                   {R"([{"type": "Container", "default": {"cpu": "100m", "memory": "32Mi"}}])"},
                   {250, 64 * kMebibyte, 250, 64 * kMebibyte},
                   {250, 64 * kMebibyte, 0, 0}});
  CAPTURE(row.situation);
  const ContainerBounds allowed = bounds(row.limits);
  const ContainerResources fitted = allowed.fitted(row.written);
  CHECK(fitted.request_millicores == row.want.request_millicores);
  CHECK(fitted.request_memory_bytes == row.want.request_memory_bytes);
  CHECK(fitted.limit_millicores == row.want.limit_millicores);
  CHECK(fitted.limit_memory_bytes == row.want.limit_memory_bytes);
  CHECK(allowed.allow(fitted));
  CHECK(allowed.objection(fitted, "x").empty());
  CHECK(allowed.allow(row.written) == (row.want == row.written));
  CHECK(allowed.objection(row.written, "x").empty() == (row.want == row.written));
}

TEST_CASE("bounds that contradict each other are fitted to no end, and objected to") {
  const ContainerBounds allowed =
      bounds({R"([{"type": "Container", "min": {"cpu": "2"}}])", R"([{"type": "Container", "max": {"cpu": "1"}}])"});
  CHECK_FALSE(allowed.allow({}));
  CHECK_FALSE(allowed.objection(allowed.fitted(kBundle), "x").empty());
}

TEST_CASE("what a user's value breaks is said with the field, the value and the way out") {
  struct Row {
    const char* limits;
    ContainerResources written;
    const char* want;
  };
  const Row row = GENERATE(
      Row{R"([{"type": "Container", "min": {"memory": "1Gi"}}])",
          {500, 256 * kMebibyte},
          "r.requests.memory is 256Mi, and the namespace's LimitRange allows no less than 1024Mi: raise it"},
      Row{R"([{"type": "Container", "min": {"cpu": "1"}}])",
          {},
          "r.requests.cpu is missing, and the namespace's LimitRange allows no less than 1000m: set it"},
      Row{R"([{"type": "Container", "max": {"cpu": "2"}}])",
          {500, 0, 4000},
          "r.limits.cpu is 4000m, and the namespace's LimitRange allows no more than 2000m: lower it"},
      Row{R"([{"type": "Container", "max": {"cpu": "2"}}])",
          {500},
          "r.limits.cpu is missing, and the namespace's LimitRange allows no more than 2000m: set it"},
      Row{R"([{"type": "Container", "max": {"cpu": "2"}, "default": {"cpu": "2"}}])", {500}, ""},
      Row{R"([{"type": "Container", "max": {"cpu": "400m"}, "default": {"cpu": "400m"}}])",
          {500},
          "r.requests.cpu is 500m, and the namespace's LimitRange allows no more than 400m: lower it"},
      Row{R"([{"type": "Container", "default": {"memory": "128Mi"}}])",
          {500, 256 * kMebibyte},
          "r.requests.memory is 256Mi, and the namespace's LimitRange gives it a limit of 128Mi: set r.limits.memory"},
      Row{R"([{"type": "Container", "maxLimitRequestRatio": {"cpu": "4"}}])",
          {500, 0, 4000},
          "r.limits.cpu is 4000m, and the namespace's LimitRange allows no more than 4 times the request: lower it, or "
          "raise r.requests.cpu"},
      Row{R"([{"type": "Container", "maxLimitRequestRatio": {"cpu": "4"}}])", {0, 0, 4000}, ""},
      Row{R"([{"type": "Container", "defaultRequest": {"cpu": "2"}, "min": {"cpu": "1"}}])", {}, ""});
  CAPTURE(row.limits);
  CHECK(bounds({row.limits}).objection(row.written, "r") == row.want);
}

TEST_CASE("a container beside others is fitted so that all of the pod together keep the bounds of pods") {
  struct Row {
    const char* situation;
    const char* limits;
    ContainerResources others;
    ContainerResources want;
  };
  const Row row =
      GENERATE(Row{"there is room", R"([{"type": "Pod", "max": {"cpu": "2"}}])", {1000, 0, 1000, 0}, kBundle},
               Row{"a little room",
                   R"([{"type": "Pod", "max": {"cpu": "2", "memory": "1Gi"}}])",
                   {1000, 512 * kMebibyte, 1900, 960 * kMebibyte},
                   {10, 32 * kMebibyte, 100, 64 * kMebibyte}},
               Row{"a least that the others do not reach",
                   R"([{"type": "Pod", "min": {"cpu": "1200m"}}])",
                   {1000, 0, 1000, 0},
                   {200, 32 * kMebibyte, 250, 128 * kMebibyte}},
               Row{"a ratio",
                   R"([{"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}}])",
                   {1000, 0, 2000, 0},
                   {125, 32 * kMebibyte, 250, 128 * kMebibyte}},
               Row{"bounds of containers, too",
                   R"([{"type": "Pod", "max": {"cpu": "2"}}, {"type": "Container", "max": {"cpu": "80m"}}])",
                   {1000, 0, 1900, 0},
                   {10, 32 * kMebibyte, 80, 128 * kMebibyte}});
  CAPTURE(row.situation);
  const ContainerBounds allowed = bounds({row.limits});
  const ContainerResources fitted = allowed.beside(row.others).fitted(kBundle);
  CHECK(fitted == row.want);
  const json pod = {{"containers", {{{"resources", render(row.others)}}, {{"resources", render(fitted)}}}}};
  CHECK(allowed.objection_to_pod(pod, "x").empty());
}

TEST_CASE("what a pod's containers have together is what LimitRanger counts, with the namespace's defaults") {
  const json pod = json::parse(R"({
    "initContainers": [
      {"name": "sidecar", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}},
      {"name": "first", "resources": {"requests": {"cpu": "4"}, "limits": {"memory": "1Gi"}}}],
    "containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "2Gi"}}},
                   {"name": "b"}]})");
  CHECK(ContainerBounds().together(pod) == ContainerResources{4100, 2048 * kMebibyte, 2200, 2048 * kMebibyte});
  const ContainerBounds defaults =
      bounds({R"([{"type": "Container", "default": {"memory": "3Gi"}, "defaultRequest": {"cpu": "5"}}])"});
  CHECK(defaults.together(pod).request_millicores == 6100);
  CHECK(defaults.together(pod).limit_memory_bytes == 8 * 1024 * kMebibyte);
  CHECK(ContainerBounds().together(json()) == ContainerResources());
}

TEST_CASE("what a pod breaks is said of its sum, with the way out") {
  struct Row {
    const char* limits;
    const char* pod;
    const char* want;
  };
  const char* const two = R"({"containers": [{"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}},
                                             {"resources": {"requests": {"cpu": "1"}}}]})";
  const Row row = GENERATE_COPY(
      Row{R"([{"type": "Pod", "max": {"cpu": "2"}}])", two,
          "the sum of limits.cpu in p is 3000m, and the namespace's LimitRange allows no more than 2000m: lower it"},
      Row{R"([{"type": "Pod", "min": {"cpu": "2500m"}}])", two,
          "the sum of requests.cpu in p is 2000m, and the namespace's LimitRange allows no less than 2500m: raise it"},
      Row{R"([{"type": "Pod", "maxLimitRequestRatio": {"cpu": "1"}}])", two,
          "the sum of limits.cpu in p is 3000m, and the namespace's LimitRange allows no more than 1 times the "
          "request: "
          "lower it, or raise the sum of requests.cpu in p"},
      Row{R"([{"type": "Pod", "max": {"memory": "2Gi"}}])", two,
          "the sum of limits.memory in p is missing, and the namespace's LimitRange allows no more than 2048Mi: set "
          "it"},
      Row{R"([{"type": "Container", "max": {"cpu": "1"}}])", two, ""},
      Row{R"([{"type": "Pod", "max": {"cpu": "3"}}])", two, ""},
      Row{R"([{"type": "Pod", "max": {"cpu": "2"}}])",
          R"({"resources": {"limits": {"cpu": "2"}}, "containers": [{"resources": {"limits": {"cpu": "3"}}}]})", ""});
  CAPTURE(row.limits);
  CHECK(bounds({row.limits}).objection_to_pod(json::parse(row.pod), "p") == row.want);
}

TEST_CASE("the LimitRanges of one namespace") {
  const kube::Store::Objects all = {
      {{"a", "z"}, range("[]")}, {{"b", "1"}, range("[]")}, {{"b", "2"}, range("[]")}, {{"c", "1"}, range("[]")}};
  CHECK(limit_ranges_in(all, "b") == std::vector{all.at({"b", "1"}), all.at({"b", "2"})});
  CHECK(limit_ranges_in(all, "d").empty());
}

}  // namespace
}  // namespace sluice::api
