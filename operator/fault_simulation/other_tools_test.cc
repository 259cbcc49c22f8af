// Pod templates of other tools (other_tools.yaml), brought up by the real reconcilers on the fake API server, which
// knows the CRDs: made or refused, and workers that fit any node.
#include <nlohmann/json.hpp>
#include <set>

#include "operator/act/pool_reconciler.h"
#include "operator/act/training_job_reconciler.h"
#include "operator/api/fields.h"
#include "operator/api/persistent_volume_claim.h"
#include "operator/fault_simulation/operator_process.h"
#include "operator/fault_simulation/virtual_clock.h"
#include "src/base/testing/catch.h"
#include "src/kube/action.h"
#include "src/kube/fake/crd.h"
#include "src/kube/fake/fake_transport.h"
#include "src/kube/fake/yaml.h"

namespace sluice::simulation {
namespace {

using api::field;
using api::list_field;
using api::text_field;
using kube::Json;

const kube::ObjectKey kJob{"default", "tool"};

// Both reconcilers, which see what is stored.
class Bench {
 public:
  Bench() {
    for (const char* file : {"crds/sluice.dev_trainingjobs.yaml", "crds/sluice.dev_dataworkerpools.yaml"})
      server_.serve(kube::fake::read_crd(file).value());
    for (const char* name : {"photos", "fsx"})
      REQUIRE(server_
                  .create(api::kPersistentVolumeClaims, {{"metadata", {{"name", name}, {"namespace", "default"}}},
                                                         {"spec", {{"accessModes", {"ReadOnlyMany"}}}}})
                  .ok());
  }

  // The server's refusal; empty: it is stored.
  std::string create(const Json& tool) {
    Json job = {{"metadata", {{"name", kJob.name}, {"namespace", kJob.namespace_}}}};
    job["spec"] = {{"mode", "Recommend"}, {"dataWorkers", {{"max", 4}, {"resources", {{"requests", {{"cpu", "1"}}}}}}}};
    job["spec"]["trainer"] = {{"replicas", tool.value("replicas", 1)}, {"template", tool.at("trainer")}};
    const auto stored = client_.create(kube::kTrainingJobs, kJob.namespace_, job, "person");
    return stored.ok() ? "" : stored.error().message();
  }

  void reconcile() {
    for (int round = 0; round < 3; ++round) {
      std::ignore = jobs_.reconcile(kJob, {});
      clock_.advance_to(clock_.now() + std::chrono::seconds(5));
    }
  }
  void ask_for_workers(int replicas) {
    server_.modify(kube::kDataWorkerPools, kJob, [&](Json& pool) { pool["spec"]["replicas"] = replicas; });
    std::ignore = pools_.reconcile(kJob, {});
  }

  Json job() { return *server_.get(kube::kTrainingJobs, kJob); }
  kube::ObjectPointer trainer() { return server_.get(kube::kJobs, kJob); }
  std::vector<Json> workers() {
    std::vector<Json> found;
    for (const auto& [key, pod] : server_.all(kube::kPods)) found.push_back(*pod);
    return found;
  }

 private:
  act::ClusterSeams seams() {
    return {.seen = [this](const kube::Resource& resource,
                           const kube::ObjectKey& key) { return server_.get(resource, key); },
            .read = [this](const kube::Resource& resource, const kube::ObjectKey& key,
                           std::stop_token stop) { return client_.get(resource, key, stop); },
            .perform = [this](const kube::Action& action, std::stop_token stop) -> Result<void> {
              const auto done = kube::perform(client_, action, stop);
              return done.ok() ? Result<void>() : done.error();
            },
            .record = [](kube::Event) {}};
  }
  std::vector<kube::ObjectPointer> pods() {
    std::vector<kube::ObjectPointer> found;
    for (const auto& [key, pod] : server_.all(kube::kPods)) found.push_back(pod);
    return found;
  }

  VirtualClock clock_;
  kube::fake::ApiServer server_{clock_};
  kube::Client client_{std::make_shared<kube::fake::FakeTransport>(server_), clock_};
  control::Config config_ = simulated_config();
  decide::DecisionBoard board_;
  act::TrainingJobReconciler jobs_{seams(), [this](const kube::ObjectKey&) { return pods(); }, config_, board_, clock_};
  act::PoolReconciler pools_{seams(), [this](const kube::ObjectKey&) { return pods(); }, board_, clock_};
};

std::vector<Json> all_containers(const Json& spec) {
  std::vector<Json> all;
  for (const char* list : {"/initContainers", "/containers"})
    for (const Json& container : list_field(spec, list)) all.push_back(container);
  return all;
}

// What the kubelet would refuse: mounts of volumes that are not there, and names, places or volumes twice.
void check_whole(const Json& spec) {
  std::set<std::string> volumes, names;
  for (const Json& volume : list_field(spec, "/volumes")) CHECK(volumes.insert(volume.at("name")).second);
  for (const Json& container : all_containers(spec)) {
    INFO(container.at("name"));
    CHECK(names.insert(container.at("name")).second);
    std::set<std::string> places;
    for (const Json& mount : list_field(container, "/volumeMounts")) {
      INFO(mount.dump());
      CHECK(volumes.contains(mount.at("name")));
      CHECK(places.insert(mount.at("mountPath")).second);
    }
  }
}

// A worker runs on any node of its architecture, and as none of the other tool's pods.
void check_worker(const Json& pod) {
  const Json& spec = pod.at("spec");
  check_whole(spec);
  for (const Json& container : all_containers(spec)) {
    CHECK_THAT(container.at("name").get<std::string>(), Catch::StartsWith("sluice-"));
    for (const char* part : {"/resources/limits", "/resources/requests"})
      for (const auto& [resource, quantity] : field(container, part).items())
        CHECK((resource == "cpu" || resource == "memory"));
  }
  for (const Json& volume : list_field(spec, "/volumes")) {
    INFO(volume.dump());
    CHECK_THAT(text_field(volume, "/emptyDir/medium"), !Catch::StartsWith("HugePages"));
    CHECK_FALSE(volume.contains("hostPath"));
    for (const Json& source : list_field(volume, "/projected/sources"))
      CHECK((!source.contains("serviceAccountToken") || !text_field(source, "/serviceAccountToken/audience").empty()));
  }
  for (const char* name : {"schedulingGates", "runtimeClassName", "hostname", "subdomain", "priority", "nodeName"})
    CHECK_FALSE(spec.contains(name));
}

std::string reason_of(const Json& job, const char* type) {
  for (const Json& condition : list_field(job, "/status/conditions"))
    if (text_field(condition, "/type") == type) return text_field(condition, "/message");
  return "";
}

void check_made(Bench& bench, const Json& tool) {
  REQUIRE(bench.trainer() != nullptr);
  const Json spec = bench.trainer()->at("/spec/template/spec"_json_pointer);
  check_whole(spec);
  const std::string trains = tool.value("trains", tool.at("/trainer/spec/containers/0/name"_json_pointer));
  for (const Json& container : list_field(spec, "/containers")) {
    INFO(container.at("name"));
    const bool connected = container.dump().find("SLUICE_FEEDER_SOCKET") != std::string::npos;
    CHECK(connected == (container.at("name") == trains));
  }
  const std::string local = tool.value("local", "");
  CHECK_THAT(reason_of(bench.job(), "WorkersBlocked"), Catch::Contains(local));
  if (!local.empty()) return;
  bench.ask_for_workers(2);
  CHECK(bench.workers().size() == 2);
  for (const Json& worker : bench.workers()) {
    check_worker(worker);
    const Json wanted = tool.value("worker", Json::object());
    for (const auto& [place, want] : wanted.items()) {
      INFO(place);
      const Json::json_pointer pointer(place);
      CHECK((worker.contains(pointer) ? worker.at(pointer) : Json()) == want);
    }
  }
}

TEST_CASE("pod templates of other tools are carried out with workers that fit, or refused with the field's name") {
  const Json tools = kube::fake::read_yaml("operator/fault_simulation/other_tools.yaml").value();
  for (const Json& tool : tools) {
    INFO(tool.at("name"));
    Bench bench;
    const std::string refused_by_server = bench.create(tool);
    if (refused_by_server.empty()) bench.reconcile();
    const std::string refused = tool.value("refused", "");
    const std::string said = refused_by_server.empty() ? reason_of(bench.job(), "Ready") : refused_by_server;
    if (!refused.empty()) {
      CHECK_THAT(said, Catch::Contains(refused));
      CHECK(bench.trainer() == nullptr);
      continue;
    }
    INFO(said);
    CHECK(refused_by_server.empty());
    if (refused_by_server.empty()) check_made(bench, tool);
  }
}

}  // namespace
}  // namespace sluice::simulation
