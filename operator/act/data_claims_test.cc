#include "operator/act/data_claims.h"

#include <nlohmann/json.hpp>

#include "operator/api/persistent_volume_claim.h"
#include "operator/testing/objects.h"
#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::act {
namespace {

using control::testing::condition;
using control::testing::training_job;
using nlohmann::json;

// Job default/vision, whose training container mounts the claim "photos", and that claim as the API server answers.
struct Claims {
  sluice::testing::ManualClock clock;
  json job = training_job();
  Result<kube::Json> answer = json::object();
  int reads = 0;
  DataClaims claims{[this](const kube::Resource& resource, const kube::ObjectKey& key, std::stop_token) {
                      CHECK(resource == api::kPersistentVolumeClaims);
                      CHECK(key == kube::ObjectKey{"default", "photos"});
                      ++reads;
                      return answer;
                    },
                    clock};

  Result<std::string> ask() { return claims.unshared_data(api::TrainingJob(job), {}); }
  void offer(const char* modes) { answer = json{{"spec", {{"accessModes", json::parse(modes)}}}}; }
};

TEST_CASE("a claim is shared where one of its access modes is for many nodes") {
  struct Case {
    const char* modes;
    bool is_shared;
  };
  const Case test = GENERATE(Case{R"(["ReadWriteOnce"])", false}, Case{R"(["ReadWriteOncePod"])", false},
                             Case{R"(["ReadOnlyMany"])", true}, Case{R"(["ReadWriteMany"])", true},
                             Case{R"(["ReadWriteOnce", "ReadOnlyMany"])", true}, Case{"[]", false}, Case{"7", false});
  INFO(test.modes);
  Claims seen;
  seen.offer(test.modes);
  const auto why = seen.ask();
  REQUIRE(why.ok());
  CHECK(why->empty() == test.is_shared);
  if (!test.is_shared)
    CHECK_THAT(*why, Catch::Contains("the volume data is the claim photos") &&
                         Catch::Contains("spec.dataWorkers.template.spec.volumes to [{name: data, emptyDir: {}}]"));
}

TEST_CASE("no claim is read for a job that wants no workers, or whose workers do not mount it") {
  Claims seen;
  json& spec = seen.job["spec"];
  SECTION("mode Off") { spec["mode"] = "Off"; }
  SECTION("placement Local") { spec["dataWorkers"]["placement"] = "Local"; }
  SECTION("finished") { seen.job["status"]["conditions"] = json::array({condition("Succeeded", "True")}); }
  SECTION("in the workers' template") {
    spec["dataWorkers"]["template"]["spec"]["volumes"] = json::parse(R"([{"name": "data", "emptyDir": {}}])");
  }
  SECTION("not mounted") { spec["trainer"]["template"]["spec"]["containers"][0]["volumeMounts"] = json::array(); }
  SECTION("no claim") {
    spec["trainer"]["template"]["spec"]["volumes"][0] = json::parse(R"({"name": "data", "nfs": {}})");
  }
  CHECK(*seen.ask() == "");
  CHECK(seen.reads == 0);
}

TEST_CASE("a claim is believed for five minutes, and for longer while it cannot be read") {
  Claims seen;
  seen.offer(R"(["ReadWriteOnce"])");
  for (int i = 0; i < 3; ++i) CHECK_FALSE(seen.ask()->empty());
  CHECK(seen.reads == 1);
  seen.clock.advance(std::chrono::minutes(6));
  seen.answer = unavailable("busy");
  CHECK_FALSE(seen.ask()->empty());
  CHECK(seen.reads == 2);
  seen.offer(R"(["ReadWriteMany"])");  // another claim of the name
  CHECK(seen.ask()->empty());
}

TEST_CASE("a claim that is not there is no hindrance, and is read again until it is there") {
  Claims seen;
  seen.answer = not_found("photos");
  CHECK(*seen.ask() == "");
  seen.offer(R"(["ReadWriteOnce"])");
  CHECK_FALSE(seen.ask()->empty());
}

TEST_CASE("what cannot be read for the moment is an error, what may not be read a hindrance") {
  Claims seen;
  seen.answer = unavailable("busy");
  CHECK_FALSE(seen.ask().ok());
  seen.answer = Error(ErrorCode::kPermissionDenied, "persistentvolumeclaims is forbidden");
  CHECK_THAT(*seen.ask(), Catch::Contains("may not read (persistentvolumeclaims is forbidden)"));
}

}  // namespace
}  // namespace sluice::act
