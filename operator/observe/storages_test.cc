#include "operator/observe/storages.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using nlohmann::json;

TEST_CASE("a job reads the storage that has one of its claims, in its own namespace") {
  const json job = json::parse(R"({"metadata": {"name": "vision", "namespace": "default"}, "spec": {"trainer": {
      "template": {"spec": {"containers": [{"name": "train"}],
      "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "photos"}}]}}}}})");
  const auto storage_by = [&](const std::string& claim) {
    return storage_of(job, {{"disk", {1e9, {"default/scans"}}}, {"nas", {7.5e8, {"default/videos", claim}}}});
  };
  CHECK(storage_by("default/photos") == "nas");
  CHECK(storage_by("other/photos").empty());
  CHECK(storage_of(job, {}).empty());
}

TEST_CASE("the scheduler sees every storage of the configuration, by name") {
  const auto seen = view_storages({{"nas", {7.5e8, {"default/photos"}}}, {"disk", {1e9, {}}}});
  REQUIRE(seen.size() == 2);
  CHECK(seen[0].name == "disk");
  CHECK(seen[1].bytes_per_second == 7.5e8);
}

}  // namespace
}  // namespace sluice::observe
