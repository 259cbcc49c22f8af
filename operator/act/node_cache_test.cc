// What the operator does for the caches of nodes: volumes by names that all pods know, the way to the cache, and its
// certificate. Without a cache nothing of it is there.
#include <nlohmann/json.hpp>

#include "operator/act/node_cache_parts.h"
#include "operator/api/fields.h"
#include "operator/api/mounted_volumes.h"
#include "operator/api/names.h"
#include "operator/api/persistent_volume_claim.h"
#include "operator/api/tls_secret.h"
#include "operator/testing/reconciler_harness.h"
#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

using api::field;
using api::text_field;
using control::testing::named;
using control::testing::ReconcilerHarness;
using control::testing::training_job;
using control::testing::variable;
using nlohmann::json;

constexpr const char* kAddress = "sluice-cache.sluice-system.svc:7473";

TEST_CASE("a mount is named by the volume that all pods know, and by its part of it") {
  const json pod = json::parse(R"({"volumes": [
    {"name": "photos", "persistentVolumeClaim": {"claimName": "photos"}},
    {"name": "later", "persistentVolumeClaim": {"claimName": "not-there-yet"}},
    {"name": "share", "nfs": {"server": "files.example", "path": "/exports/a"}},
    {"name": "scratch", "emptyDir": {}}, {"name": "node", "hostPath": {"path": "/data"}},
    {"name": "own", "ephemeral": {"volumeClaimTemplate": {}}}]})");
  struct Case {
    const char* mount;
    const char* path;
    const char* name;
  };
  for (const Case& c : {
           Case{R"({"name": "photos", "mountPath": "/data"})", "/data", "claim uid-1"},
           Case{R"({"name": "photos", "mountPath": "//data/"})", "/data", "claim uid-1"},
           Case{R"({"name": "photos", "mountPath": "/var/run/data"})", "/run/data", "claim uid-1"},
           Case{R"({"name": "photos", "mountPath": "/data", "subPath": "train"})", "/data", "claim uid-1/train"},
           Case{R"({"name": "photos", "mountPath": "/data", "subPath": "a//b/"})", "/data", "claim uid-1/a/b"},
           Case{R"({"name": "photos", "mountPath": "/data", "subPathExpr": "$(POD)/a"})", "/data", ""},
           Case{R"({"name": "later", "mountPath": "/data"})", "/data", ""},
           Case{R"({"name": "share", "mountPath": "/data"})", "/data", "nfs files.example:/exports/a:"},
           Case{R"({"name": "share", "mountPath": "/data", "subPath": "b"})", "/data",
                "nfs files.example:/exports/a:/b"},
           Case{R"({"name": "scratch", "mountPath": "/data"})", "/data", ""},
           Case{R"({"name": "node", "mountPath": "/data"})", "/data", ""},
           Case{R"({"name": "own", "mountPath": "/data"})", "/data", ""},
           Case{R"({"name": "of no volume", "mountPath": "/data"})", "/data", ""},
       }) {
    INFO(c.mount);
    const json container = {{"volumeMounts", json::array({json::parse(c.mount)})}};
    CHECK(json::parse(api::mounted_volumes(pod, container, {{"photos", "uid-1"}})) == json{{c.path, c.name}});
  }
}

// Job default/vision, its claim "photos", and the objects that the operator makes of them.
struct World {
  World() {
    harness.config.leader_election.lease_namespace = "default";  // where this cluster keeps all
    harness.cluster.put(kube::kTrainingJobs, training_job());
  }
  void enable() { harness.config.node_cache = {kAddress, "sluice-cache-tls"}; }
  void claim(const std::string& uid) {
    harness.cluster.put(api::kPersistentVolumeClaims,
                        {{"metadata", {{"name", "photos"}, {"namespace", "default"}, {"uid", uid}}},
                         {"spec", {{"accessModes", {"ReadWriteMany"}}}}});
  }
  void reconcile() {
    for (int round = 0; round < 5; ++round) CHECK(harness.jobs.reconcile({"default", "vision"}, {}).ok());
  }
  json trainer_pod() const { return field(*harness.cluster.get(kube::kJobs, "vision"), "/spec/template/spec"); }
  json worker_pod() const {
    return field(*harness.cluster.get(kube::kDataWorkerPools, "vision"), "/spec/template/spec");
  }
  std::string entry(const std::string& secret, std::string_view name) const {
    return api::TlsSecret(*harness.cluster.get(kube::kSecrets, secret)).text(name);
  }

  ReconcilerHarness harness;
};

TEST_CASE("feeder and workers get the way to the cache, a token, and their volumes' names") {
  World world;
  world.enable();
  world.claim("uid-1");
  world.reconcile();
  const json trainer = world.trainer_pod(), worker = world.worker_pod();
  const json feeder = named(trainer["initContainers"], "sluice-feeder");
  for (const json& executor : {feeder, named(worker["containers"], "sluice-worker")}) {
    CHECK(variable(executor, "SLUICE_CACHE_SERVICE") == kAddress);
    CHECK(variable(executor, "SLUICE_CACHE_SERVICE_FILES") == "/etc/sluice/cache");
    const json volumes = json::parse(variable(executor, "SLUICE_CACHE_VOLUMES"));
    CHECK(volumes["/data"] == "claim uid-1");
    CHECK(volumes["/tmp"] == "");
    CHECK(named(executor["volumeMounts"], "sluice-node-cache")["mountPath"] == "/etc/sluice/cache");
  }
  for (const json& pod : {trainer, worker}) {
    const json sources = named(pod["volumes"], "sluice-node-cache")["projected"]["sources"];
    CHECK(sources[0]["secret"]["name"] == "vision-sluice-tls");
    CHECK(sources[0]["secret"]["optional"] == true);
    CHECK(sources[1]["serviceAccountToken"]["audience"] == "sluice-cache");
  }
  CHECK(variable(trainer["containers"][0], "SLUICE_CACHE_SERVICE") == "<unset>");
  CHECK(worker["automountServiceAccountToken"] == false);
}

TEST_CASE("without a cache no object has anything of it") {
  World without, with;
  with.enable();
  for (World* world : {&without, &with}) {
    world->claim("uid-1");
    world->reconcile();
  }
  for (const json& pod : {without.trainer_pod(), without.worker_pod()})
    for (const char* part : {"SLUICE_CACHE", "sluice-node-cache", "serviceAccountToken"})
      CHECK(pod.dump().find(part) == std::string::npos);
  CHECK(without.entry("vision-sluice-tls", api::kCacheAuthoritiesEntry).empty());
  CHECK(without.harness.cluster.get(kube::kSecrets, "sluice-cache-tls") == nullptr);
  // And with one, nothing else has changed.
  for (auto [plain, more, list, name] :
       {std::tuple(without.trainer_pod(), with.trainer_pod(), "initContainers", "sluice-feeder"),
        std::tuple(without.worker_pod(), with.worker_pod(), "containers", "sluice-worker")}) {
    const auto without_part = [](json& entries, const char* prefix) {
      json kept = json::array();
      for (const json& entry : entries)
        if (!text_field(entry, "/name").starts_with(prefix)) kept.push_back(entry);
      entries = kept;
    };
    without_part(more["volumes"], "sluice-node-cache");
    for (json& container : more[list]) {
      if (container["name"] != name) continue;
      without_part(container["volumeMounts"], "sluice-node-cache");
      without_part(container["env"], "SLUICE_CACHE");
    }
    CHECK(json::diff(plain, more) == json::array());
  }
}

TEST_CASE("what a job says of its cache stays") {
  World world;
  world.enable();
  json job = training_job();
  job["spec"]["trainer"]["template"]["spec"]["containers"][0]["env"].push_back(
      {{"name", "SLUICE_CACHE_SERVICE"}, {"value", ""}});
  job["spec"]["trainer"]["template"]["spec"]["containers"][0]["volumeMounts"].push_back(
      {{"name", "data"}, {"mountPath", "/cost$(EPOCHS)"}});
  world.harness.cluster.put(kube::kTrainingJobs, job);
  world.claim("uid-1");
  world.reconcile();
  const json feeder = named(world.trainer_pod()["initContainers"], "sluice-feeder");
  CHECK(variable(feeder, "SLUICE_CACHE_SERVICE") == "");
  // As it is written, so that the kubelet puts no variable there.
  CHECK(variable(feeder, "SLUICE_CACHE_VOLUMES").find("/cost$$(EPOCHS)") != std::string::npos);
}

TEST_CASE("a claim that comes later is named to the workers that follow") {
  World world;
  world.enable();
  world.reconcile();
  const auto volume = [&] {
    const json worker = named(world.worker_pod()["containers"], "sluice-worker");
    return json::parse(variable(worker, "SLUICE_CACHE_VOLUMES"))["/data"];
  };
  CHECK(volume() == "");
  world.claim("uid-1");
  world.reconcile();
  CHECK(volume() == "claim uid-1");
  world.claim("uid-2");  // another one of the name
  world.harness.clock.advance(std::chrono::minutes(6));
  world.reconcile();
  CHECK(volume() == "claim uid-2");
}

TEST_CASE("the caches' certificate is made once, renewed in two steps, and every job trusts each step's") {
  World world;
  world.enable();
  world.claim("uid-1");
  world.reconcile();
  const std::string first = world.entry("sluice-cache-tls", api::kCertificateEntry);
  CHECK_FALSE(first.empty());
  CHECK(world.entry("vision-sluice-tls", api::kCacheAuthoritiesEntry) ==
        world.entry("sluice-cache-tls", api::kAuthoritiesEntry));
  const std::string own = world.entry("vision-sluice-tls", api::kAuthoritiesEntry);
  world.reconcile();
  CHECK(world.entry("sluice-cache-tls", api::kCertificateEntry) == first);

  int certificates = 1;
  std::string shown = first;
  for (int day = 0; day < 200; day += 3) {
    world.harness.clock.advance(std::chrono::hours(3 * 24));
    CHECK(world.harness.jobs.reconcile({"default", "vision"}, {}).ok());
    const std::string now = world.entry("sluice-cache-tls", api::kCertificateEntry);
    const std::string trusted = world.entry("vision-sluice-tls", api::kCacheAuthoritiesEntry);
    CHECK(trusted == world.entry("sluice-cache-tls", api::kAuthoritiesEntry));
    CHECK(validity_of(now)->until > world.harness.clock.wall_now());
    if (std::exchange(shown, now) != now) ++certificates;
  }
  CHECK(certificates == 4);
  CHECK_FALSE(own == world.entry("vision-sluice-tls", api::kAuthoritiesEntry));  // its own are renewed beside them
}

TEST_CASE("a job runs without the cache while its certificate can be neither read nor made") {
  World world;
  world.enable();
  world.claim("uid-1");
  world.harness.fail = [](const kube::Action& action) -> Result<void> {
    if (action.key.name != "sluice-cache-tls") return {};
    return Error(ErrorCode::kPermissionDenied, "secrets is forbidden");
  };
  world.reconcile();
  CHECK(world.trainer_pod().contains("containers"));
  CHECK(world.entry("vision-sluice-tls", api::kCacheAuthoritiesEntry).empty());
  world.harness.fail = [](const kube::Action&) { return Result<void>(); };
  world.reconcile();
  CHECK(world.entry("vision-sluice-tls", api::kCacheAuthoritiesEntry).empty());  // not tried again at once
  world.harness.clock.advance(std::chrono::seconds(30));
  world.reconcile();
  CHECK_FALSE(world.entry("vision-sluice-tls", api::kCacheAuthoritiesEntry).empty());
}

}  // namespace
}  // namespace sluice::act
