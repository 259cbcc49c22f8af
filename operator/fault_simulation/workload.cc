#include "operator/fault_simulation/workload.h"

#include <algorithm>
#include <mutex>

#include "src/kube/fake/yaml.h"

namespace sluice::simulation {

using nlohmann::json;

namespace {

json complete_job() {
  return json::parse(R"({
    "metadata": {"namespace": "default"},
    "spec": {
      "trainer": {"replicas": 1, "template": {"spec": {"containers": [
        {"name": "trainer", "image": "trainer", "resources": {"requests": {"cpu": "1"}}}]}}},
      "feeder": {"resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "250m"}}, "arena": "64Mi"},
      "dataWorkers": {"min": 0, "max": 3, "resources": {"requests": {"cpu": "500m"}}}}})");
}

Result<Workload> read(const std::string& name) {
  SLUICE_TRY(const json file, kube::fake::read_yaml("operator/fault_simulation/workloads/" + name + ".yaml"));
  try {
    Workload workload;
    workload.name = name;
    workload.nodes = file.at("nodes");
    workload.resizes_pods = file.value("resizesPods", false);
    workload.path_dependent = file.value("pathDependent", false);
    for (const auto& [job, physics] : file.at("physics").items()) {
      Physics& made = workload.physics[job];
      made.fluid.demand = physics.at("demand");
      made.fluid.local_rate = physics.value("localRate", 500.0);
      made.fluid.remote_rate = physics.value("remoteRate", 400.0);
      made.fluid.local_cores = physics.value("localCores", 0.25);
      made.worker_memory_bytes = physics.value("memoryMebibytes", std::int64_t{0}) << 20;
      made.train_seconds = physics.value("seconds", made.train_seconds);
    }
    for (const json& entry : file.at("timeline")) {
      UserAction action{entry.at("at"), entry};
      if (entry.contains("create")) {
        action.action["create"] = complete_job();
        action.action["create"].merge_patch(entry.at("create"));
      }
      if (const auto odd = odd_template(action.action))
        workload.odd_templates[odd->object] = action.action.at(odd->place);
      workload.ends_at_seconds = std::max(workload.ends_at_seconds, action.at_seconds);
      workload.timeline.push_back(std::move(action));
    }
    return workload;
  } catch (const json::exception& failure) {
    return invalid_argument("workload " + name + ": " + failure.what());
  }
}

}  // namespace

std::optional<OddTemplate> odd_template(const json& action) {
  if (const auto pool = action.find("overwrite"); pool != action.end()) {
    const std::string path = *pool;
    return OddTemplate{path.substr(path.find('/') + 1), json::json_pointer("/template")};
  }
  if (!action.contains("odd")) return std::nullopt;
  const std::string verb = action.contains("create") ? "create" : "createPool";
  return OddTemplate{action.at(verb).at("metadata").at("name"),
                     json::json_pointer("/" + verb + action.at("odd").get<std::string>())};
}

Result<const Workload*> workload(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, Workload> known;
  std::lock_guard lock(mutex);
  if (const auto found = known.find(name); found != known.end()) return &found->second;
  SLUICE_TRY(Workload made, read(name));
  return &(known[name] = std::move(made));
}

const std::vector<std::string>& workload_names() {
  static const std::vector<std::string> kNames = {"starved", "finishes", "recommend", "again", "suspend",   "odd",
                                                  "host",    "fenced",   "sized",     "gang",  "templates", "drained"};
  return kNames;
}

}  // namespace sluice::simulation
