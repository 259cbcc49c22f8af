#include "operator/act/device_claims.h"

#include <nlohmann/json.hpp>

#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::act {
namespace {

using control::testing::condition;
using control::testing::training_job;
using nlohmann::json;

json asks_for(const char* device_class, int count) {
  return {
      {"spec", {{"devices", {{"requests", {{{"exactly", {{"deviceClassName", device_class}, {"count", count}}}}}}}}}}};
}

// Job default/vision, whose training container uses the claims "gpus" (of a template) and "nic", and the API server.
struct Claims {
  sluice::testing::ManualClock clock;
  json job = training_job();
  std::map<std::string, Result<kube::Json>> server = {{"gpus", asks_for("gpu.nvidia.com", 8)},
                                                      {"nic", asks_for("dranet", 1)}};
  int reads = 0;
  DeviceClaims claims{[this](const kube::Resource& resource, const kube::ObjectKey& key, std::stop_token) {
                        CHECK(resource == (key.name == "gpus" ? api::kResourceClaimTemplates : api::kResourceClaims));
                        CHECK(key.namespace_ == "default");
                        ++reads;
                        return server.at(key.name);
                      },
                      clock};

  Claims() {
    json& pod = job["spec"]["trainer"]["template"]["spec"];
    pod["resourceClaims"] = json::parse(R"([{"name": "a", "resourceClaimTemplateName": "gpus"},
                                            {"name": "b", "resourceClaimName": "nic"}])");
    pod["containers"][0]["resources"] = json::parse(R"({"claims": [{"name": "a"}, {"name": "b"}]})");
  }

  std::optional<std::int64_t> ask() { return claims.accelerators(api::TrainingJob(job), {}); }
};

TEST_CASE("a trainer's accelerators are counted in its claims") {
  Claims seen;
  CHECK(seen.ask() == 8);
  SECTION("all devices count where no class tells of accelerators") {
    Claims unnamed;
    unnamed.server.at("gpus") = asks_for("a100", 4);
    CHECK(unnamed.ask() == 5);
  }
  SECTION("what is not there, or may not be read, counts as one") {
    Claims fewer;
    fewer.server.at("gpus") = Error(GENERATE(ErrorCode::kNotFound, ErrorCode::kPermissionDenied), "no");
    CHECK(fewer.ask() == 2);
  }
  SECTION("nothing is known while the API server does not answer") {
    Claims away;
    away.server.at("nic") = Error(ErrorCode::kUnavailable, "no");
    CHECK(away.ask() == std::nullopt);
  }
  SECTION("a job that is over, or whose limits name its accelerators, reads no claim") {
    Claims other;
    if (GENERATE(true, false))
      other.job["status"]["conditions"] = json::array({condition("Succeeded", "True")});
    else
      other.job["spec"]["trainer"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {{"amd.com/gpu", 2}};
    CHECK(other.ask() == std::nullopt);
    CHECK(other.reads == 0);
  }
}

TEST_CASE("a claim is believed for five minutes, its absence for one") {
  Claims seen;
  seen.server.at("gpus") = Error(ErrorCode::kNotFound, "no");
  CHECK(seen.ask() == 2);
  CHECK(seen.ask() == 2);
  CHECK(seen.reads == 2);
  seen.server.at("gpus") = asks_for("gpu.nvidia.com", 8);
  seen.clock.advance(std::chrono::minutes(1));
  CHECK(seen.ask() == 8);
  CHECK(seen.reads == 3);
  seen.clock.advance(std::chrono::minutes(5));
  CHECK(seen.ask() == 8);
  CHECK(seen.reads == 5);
}

}  // namespace
}  // namespace sluice::act
