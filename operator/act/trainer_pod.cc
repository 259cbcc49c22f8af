#include "operator/act/trainer_pod.h"

#include <nlohmann/json.hpp>

#include "operator/act/objects.h"
#include "operator/act/pod_parts.h"
#include "operator/names.h"
#include "operator/observe/fields.h"
#include "operator/observe/training_job_view.h"
#include "src/kube/quantity.h"

namespace sluice::act {

using namespace control;
using nlohmann::json;
using observe::field;
using observe::text_field;

namespace {

constexpr std::string_view kDefaultArena = "512Mi";

Result<std::int64_t> arena_bytes(const json& training_job) {
  const json& arena = field(training_job, "/spec/feeder/arena");
  if (arena.is_null()) return kube::parse_bytes(kDefaultArena);
  auto bytes = kube::parse_bytes(arena.is_string() ? arena.get<std::string>() : arena.dump());
  if (!bytes.ok()) return bytes.error().with_context("spec.feeder.arena");
  return bytes;
}

Result<json> feeder_arguments(const json& training_job) {
  const std::string job = text_field(training_job, "/metadata/name");
  const std::string name_space = text_field(training_job, "/metadata/namespace");
  const std::string placement = text_field(training_job, "/spec/dataWorkers/placement", "Auto");
  SLUICE_TRY(const std::int64_t arena, arena_bytes(training_job));
  json arguments =
      json::array({"--socket", kSocketPath, "--job", job, "--namespace", name_space, "--metrics-address",
                   "0.0.0.0:" + std::to_string(kMetricsPort), "--tls-dir", kTlsPath, "--python-path",
                   std::string(kBundlePath) + "/python", "--arena-bytes", std::to_string(arena),
                   // With placement Local, too: it may be set to another one while the trainer runs.
                   "--workers", service_name(job) + "." + name_space + ".svc:" + std::to_string(kWorkerPort)});
  // Remote placement counts on no CPU of the trainer's host; one thread bridges the time without workers.
  if (placement == "Remote") {
    arguments.push_back("--threads");
    arguments.push_back("1");
  }
  return arguments;
}

Result<json> feeder_container(const json& training_job, const json& trainer_container) {
  json container = executor_container(kFeederContainer, trainer_container);
  container["restartPolicy"] = "Always";  // a native sidecar
  container["command"] = bundle_command("sluice-feeder");
  SLUICE_TRY(container["args"], feeder_arguments(training_job));
  container["volumeMounts"].push_back(volume_mount(kSocketVolume, kSocketDirectory, false));
  if (const json& resources = field(training_job, "/spec/feeder/resources"); resources.is_object())
    container["resources"] = resources;
  // The trainer starts when the probe has succeeded once: the feeder's socket is there before anybody looks for it.
  container["startupProbe"] = http_probe("/readyz", 1, 120);
  return container;
}

void connect_trainer(json& container, const json& training_job) {
  json& env = container["env"];
  if (!env.is_array()) env = json::array();
  prepend_python_path(env);
  set_variable(env, "SLUICE_FEEDER_SOCKET", kSocketPath);
  set_variable(env, "SLUICE_JOB", text_field(training_job, "/metadata/name"));
  set_variable(env, "SLUICE_NAMESPACE", text_field(training_job, "/metadata/namespace"));
  json& mounts = container["volumeMounts"];
  if (!mounts.is_array()) mounts = json::array();
  mounts.push_back(volume_mount(kBundleVolume, kBundlePath, true));
  mounts.push_back(volume_mount(kSocketVolume, kSocketDirectory, false));
}

void append(json& object, const char* list, json item) {
  json& target = object[list];
  if (!target.is_array()) target = json::array();
  target.push_back(std::move(item));
}

}  // namespace

Result<json> trainer_pod_template(const json& training_job, bool with_feeder, const Config& config) {
  json pod = without_nulls(field(training_job, "/spec/trainer/template"));
  json& spec = pod["spec"];
  json& metadata = pod["metadata"];
  if (!metadata.is_object()) metadata = json::object();
  set_labels(metadata, text_field(training_job, "/metadata/name"), kTrainerComponent);
  if (text_field(spec, "/restartPolicy").empty()) spec["restartPolicy"] = "Never";
  if (!with_feeder) return pod;

  const std::size_t index = observe::training_container_index(training_job);
  const json trainer_container = spec["containers"][index];  // as the user wrote it
  const json trainer_pod = spec;
  connect_trainer(spec["containers"][index], training_job);
  append(spec, "initContainers", bundle_container(trainer_pod, trainer_container, config));
  SLUICE_TRY(json feeder, feeder_container(training_job, trainer_container));
  append(spec, "initContainers", std::move(feeder));
  for (json& volume : executor_volumes(text_field(training_job, "/metadata/name")))
    append(spec, "volumes", std::move(volume));
  append(spec, "volumes", {{"name", kSocketVolume}, {"emptyDir", json::object()}});
  set_scraped(metadata);
  return pod;
}

}  // namespace sluice::act
