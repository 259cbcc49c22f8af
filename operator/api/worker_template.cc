#include "operator/api/worker_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/container_draft.h"
#include "operator/api/fields.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"
#include "operator/api/pod.h"
#include "operator/api/pod_template.h"
#include "operator/api/strategic_merge.h"
#include "operator/api/trainer_template.h"
#include "operator/api/worker_volume.h"

namespace sluice::api {
namespace {

using nlohmann::json;

struct Reserved {
  const char* field;
  const char* way_out;
};
constexpr const char* kTakeOut = "Sluice sets it; take it out";
constexpr Reserved kReservedOfPod[] = {
    {"restartPolicy", kTakeOut},
    {"terminationGracePeriodSeconds", kTakeOut},
    {"activeDeadlineSeconds", kTakeOut},
    {"hostNetwork", "workers have addresses of their own; take it out"},
    {"nodeName", "the scheduler chooses the node; use nodeSelector or affinity"},
    {"resources", "set spec.dataWorkers.resources instead"},
    {"resourceClaims", "workers use no devices; take it out"},
    {"automountServiceAccountToken",
     "workers get no token for the API server; take it out, and use a projected volume with an audience"}};
constexpr Reserved kReservedOfWorker[] = {{"command", kTakeOut},
                                          {"args", kTakeOut},
                                          {"ports", kTakeOut},
                                          {"readinessProbe", kTakeOut},
                                          {"livenessProbe", kTakeOut},
                                          {"restartPolicy", kTakeOut},
                                          {"resources", "set spec.dataWorkers.resources instead"}};
constexpr Reserved kReservedOfBundle[] = {{"command", kTakeOut},
                                          {"args", kTakeOut},
                                          {"image", kTakeOut},
                                          {"volumeMounts", kTakeOut},
                                          {"restartPolicy", kTakeOut}};
// A null would take away what Sluice needs.
constexpr const char* kTextsOfMetadata[] = {"labels"};
constexpr const char* kListsOfPod[] = {"containers", "initContainers", "volumes"};
constexpr const char* kListsOfContainer[] = {"env", "volumeMounts"};
constexpr std::string_view kOwnPrefix = "sluice-";
// What every worker's init container asks for by itself (act/pod_parts.cc).
constexpr std::int64_t kBundleMillicores = 10;
constexpr std::int64_t kBundleMemoryBytes = 32 << 20;

template <std::size_t count>
Result<void> check_reserved(const json& object, const Reserved (&reserved)[count], const std::string& path) {
  for (const auto& [field, way_out] : reserved)
    if (object.contains(field)) return invalid_argument(path + "." + field + " cannot be set: " + way_out);
  return {};
}

template <std::size_t count>
Result<void> check_no_nulls(const json& object, const char* const (&fields)[count], const std::string& path) {
  for (const char* field : fields)
    if (object.contains(field) && object[field].is_null())
      return invalid_argument(path + "." + field + " must not be null; leave it out");
  return {};
}

Result<void> check_labels(const json& metadata, const std::string& path) {
  SLUICE_TRY_VOID(check_no_nulls(metadata, kTextsOfMetadata, path));
  if (!member(metadata, "labels").is_object()) return {};
  for (const auto& [name, value] : metadata["labels"].items())
    if (name.starts_with("sluice.dev/") || name == kManagedByLabel || name == kPartOfLabel)
      return invalid_argument(path + ".labels must not hold " + name + ": Sluice finds its workers by it; take it out");
  return {};
}

Result<void> check_worker_container(const json& container, const std::string& path) {
  if (text_member(container, "name") != kWorkerContainer)
    return invalid_argument(path + ".name must be " + std::string(kWorkerContainer) +
                            ": a worker has one container, and the scheduler reckons with its CPU; use initContainers");
  SLUICE_TRY_VOID(check_reserved(container, kReservedOfWorker, path));
  SLUICE_TRY_VOID(check_no_nulls(container, kListsOfContainer, path));
  for (const json& mount : list_field(container, "/volumeMounts")) {
    const std::string place = tidy_path(text_member(mount, "mountPath"));
    for (const std::string_view ours : {kBundlePath, kTlsPath})
      if ((place + "/").starts_with(std::string(ours) + "/"))
        return invalid_argument(path + ".volumeMounts must not hold " + place +
                                ": Sluice's own files are there; choose another mountPath");
    if (is_above_ours(place) && member(mount, "readOnly") == true)
      return invalid_argument(path + ".volumeMounts must not hold " + place +
                              " as readOnly: Sluice's directories are made below it; choose another mountPath");
  }
  return {};
}

// The smallest that a worker of the job may be, and what says so.
struct LeastWorker {
  WorkerSize size;
  std::string cpu_field, memory_field;
};

LeastWorker least_worker(const TrainingJob& job) {
  if (job.worker_resources().is_null()) {
    const WorkerSize least = job.auto_resources().least();
    return {least,
            "the " + std::to_string(least.millicores) +
                "m that spec.dataWorkers.autoResources.cpu gives the smallest worker",
            "spec.dataWorkers.autoResources.minMemory"};
  }
  const json worker = {{"resources", job.worker_resources()}};
  const Container container(worker);
  return {{container.request_millicores(), container.request_memory_bytes()},
          "spec.dataWorkers.resources.requests.cpu",
          "spec.dataWorkers.resources.requests.memory"};
}

// The scheduler counts a worker as its container: what comes before may take no more.
Result<void> check_init_container(const json& container, const TrainingJob& job, const std::string& path) {
  const std::string name = text_member(container, "name");
  const bool bundle = name == kBundleContainer;
  if (bundle) SLUICE_TRY_VOID(check_reserved(container, kReservedOfBundle, path));
  if (!bundle && name.starts_with(kOwnPrefix))
    return invalid_argument(path + ".name must not begin with \"sluice-\"; rename the container");
  const Container init(container);
  if (init.is_sidecar())
    return invalid_argument(path +
                            ".restartPolicy must not be Always: the scheduler reckons with one container's CPU; "
                            "take it out");
  const LeastWorker worker = least_worker(job);
  if (init.request_millicores() > std::max(worker.size.millicores, kBundleMillicores))
    return invalid_argument(path + ".resources.requests.cpu must not exceed " + worker.cpu_field +
                            "; lower it or raise that");
  if (init.request_memory_bytes() > std::max(worker.size.memory_bytes, kBundleMemoryBytes))
    return invalid_argument(path + ".resources.requests.memory must not exceed " + worker.memory_field +
                            "; lower it or raise that");
  return {};
}

Result<void> check_volume(const json& volume, const std::string& path) {
  if (text_member(volume, "name").starts_with(kOwnPrefix))
    return invalid_argument(path + ".name must not begin with \"sluice-\"; rename the volume");
  for (const json& source : list_field(volume, "/projected/sources"))
    if (is_server_token(source))
      return invalid_argument(path + ".projected holds a serviceAccountToken without an audience, which is the API " +
                              "server's; set the audience of the service that the token is for");
  return {};
}

template <class Check>
Result<void> check_each(const json& spec, const std::string& path, const char* list, const Check& check) {
  std::size_t index = 0;
  for (const json& element : list_field(spec, std::string("/") + list))
    SLUICE_TRY_VOID(check(element, path + "." + list + "[" + std::to_string(index++) + "]"));
  return {};
}

}  // namespace

Result<void> check_worker_template(const TrainingJob& training_job, std::string_view path) {
  const json& said = training_job.worker_template();
  SLUICE_TRY_VOID(check_pod_template_part(said, path));
  const std::string root(path);
  SLUICE_TRY_VOID(check_labels(member(said, "metadata"), root + ".metadata"));
  const json& spec = member(said, "spec");
  if (!spec.is_object()) return {};
  const std::string pod = root + ".spec";
  SLUICE_TRY_VOID(check_reserved(spec, kReservedOfPod, pod));
  SLUICE_TRY_VOID(check_no_nulls(spec, kListsOfPod, pod));
  SLUICE_TRY_VOID(check_each(spec, pod, "containers", check_worker_container));
  SLUICE_TRY_VOID(check_each(spec, pod, "initContainers", [&](const json& container, const std::string& place) {
    return check_init_container(container, training_job, place);
  }));
  return check_each(spec, pod, "volumes", check_volume);
}

json with_worker_template(json derived, const TrainingJob& training_job) {
  for (const char* part : {"metadata", "spec"})
    if (const json& said = member(training_job.worker_template(), part); said.is_object())
      derived[part] = strategic_merge(std::move(derived[part]), said);
  return derived;
}

}  // namespace sluice::api
