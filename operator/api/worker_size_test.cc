#include "operator/api/worker_size.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::api {
namespace {

using nlohmann::json;

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
constexpr std::int64_t kGibibyte = 1024 * kMebibyte;

TEST_CASE("the bounds of autoResources, with the schema's defaults for what is left out") {
  const AutoResources all =
      read_auto_resources(json::parse(R"({"cpu": 2, "firstMemory": "2Gi", "minMemory": "1Gi", "maxMemory": "4Gi"})"));
  CHECK(all.millicores == 2000);
  CHECK(all.first() == WorkerSize{2000, 2 * kGibibyte});
  CHECK(all.within(0) == kGibibyte);
  CHECK(all.within(5 * kGibibyte) == 4 * kGibibyte);
  for (const json& none : {json(), json::object()}) {
    const AutoResources defaults = read_auto_resources(none);
    CHECK(defaults.first() == WorkerSize{1000, kGibibyte});
    CHECK(defaults.within(0) == 128 * kMebibyte);
    CHECK(defaults.within(kGibibyte * 100) == 8 * kGibibyte);
  }
}

TEST_CASE("the first workers stay within the bounds") {
  CHECK(read_auto_resources({{"maxMemory", "512Mi"}}).first().memory_bytes == 512 * kMebibyte);
  CHECK(read_auto_resources({{"minMemory", "2Gi"}}).first().memory_bytes == 2 * kGibibyte);
}

TEST_CASE("the smallest worker has a half or a quarter of the CPU, but no part under 100m") {
  for (const auto& [millicores, least] : std::initializer_list<std::pair<std::int64_t, std::int64_t>>{
           {2000, 500}, {400, 100}, {399, 199}, {200, 100}, {199, 199}, {80, 80}}) {
    INFO(millicores);
    AutoResources bounds;
    bounds.millicores = millicores;
    CHECK(bounds.least() == WorkerSize{least, 128 * kMebibyte});
  }
}

TEST_CASE("a worker may use twice its memory, and never more than the largest size") {
  const AutoResources bounds = read_auto_resources({{"maxMemory", "1Gi"}});
  CHECK(
      render(bounds.resources({500, 300 * kMebibyte})) ==
      json::parse(R"({"requests": {"cpu": "500m", "memory": "300Mi"}, "limits": {"cpu": "500m", "memory": "600Mi"}})"));
  CHECK(bounds.resources({500, 800 * kMebibyte}).limit_memory_bytes == kGibibyte);
  CHECK(bounds.resources({500, kGibibyte}).limit_memory_bytes == kGibibyte);
}

TEST_CASE("what was rendered is read again") {
  for (const WorkerSize& size : {WorkerSize{250, 64 * kMebibyte}, WorkerSize{1000, kGibibyte + 1}})
    CHECK(requested_size(render(AutoResources().resources(size))) == size);
}

}  // namespace
}  // namespace sluice::api
