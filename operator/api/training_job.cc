#include "operator/api/training_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/accelerators.h"
#include "operator/api/conditions.h"
#include "operator/api/device_claim.h"
#include "operator/api/fields.h"
#include "operator/api/fingerprint.h"
#include "operator/api/labels.h"
#include "operator/api/pod.h"
#include "operator/api/pod_template.h"
#include "operator/api/quantity_text.h"
#include "operator/api/trainer_data.h"
#include "operator/api/trainer_template.h"
#include "operator/api/worker_template.h"
#include "src/kube/quantity.h"

namespace sluice::api {
namespace {

using nlohmann::json;

constexpr std::string_view kDefaultArena = "512Mi";
constexpr std::int64_t kDefaultBackoffLimit = 6;  // as of a batch/v1 Job

// A quantity in a resource list may be written as a number.
Result<std::int64_t> milli_field(const json& object, std::string_view pointer) {
  const json& value = field(object, pointer);
  if (value.is_null()) return std::int64_t{0};
  const auto parsed = kube::parse_millicores(value.is_string() ? value.get<std::string>() : value.dump());
  if (!parsed.ok()) return parsed.error().with_context(Object(object).key().to_string() + " " + std::string(pointer));
  return std::min(*parsed, kMostOfQuantity);
}

Result<Mode> view_mode(const json& object) {
  const std::string text = TrainingJob(object).mode();
  if (text == "Auto") return Mode::kAuto;
  if (text == "Recommend") return Mode::kRecommend;
  if (text == "Off") return Mode::kOff;
  return invalid_argument(Object(object).key().to_string() + " spec.mode: \"" + text +
                          "\" is not Auto, Recommend or Off");
}

Result<Placement> view_placement(const json& object) {
  const std::string text = TrainingJob(object).placement();
  if (text == "Auto") return Placement::kAuto;
  if (text == "Local") return Placement::kLocal;
  if (text == "Remote") return Placement::kRemote;
  return invalid_argument(Object(object).key().to_string() + " spec.dataWorkers.placement: \"" + text +
                          "\" is not Auto, Local or Remote");
}

// As spec.dataWorkers.resources has it.
Result<ContainerResources> stated_worker(const json& object) {
  ContainerResources worker;
  SLUICE_TRY(worker.request_millicores, milli_field(object, "/spec/dataWorkers/resources/requests/cpu"));
  worker.limit_memory_bytes = bytes_field(object, "/spec/dataWorkers/resources/limits/memory");
  worker.limit_millicores = millicores_field(object, "/spec/dataWorkers/resources/limits/cpu");
  // As the API server defaults it.
  worker.request_memory_bytes = worker.limit_memory_bytes;
  if (!field(object, "/spec/dataWorkers/resources/requests/memory").is_null())
    worker.request_memory_bytes = bytes_field(object, "/spec/dataWorkers/resources/requests/memory");
  return worker;
}

// What the container says to Sluice itself. It decides how batches are made: natively or in Python, with a cache or
// not.
json settings_of(const json& container) {
  json settings = json::array();
  for (const json& variable : list_field(container, "/env"))
    if (text_field(variable, "/name").starts_with("SLUICE_")) settings.push_back(variable);
  return settings;
}

std::string likeness_of(const TrainingJob& job) {
  const json none;
  const json& containers = job.trainer_containers();
  const json& trainer = containers.empty() ? none : containers[job.training_container_index()];
  const json name_space = job.name_space(), replicas = job.trainer_replicas(), like = job.label(kLikeLabel);
  const json accelerators = accelerators_of_pod(job.trainer_pod());
  return fingerprint_of_array({&name_space, &member(trainer, "image"), &member(trainer, "command"),
                               &member(trainer, "args"), &replicas, &accelerators, &job.worker_resources(),
                               &job.worker_template(), &like}) +
         "." + fingerprint(settings_of(trainer));
}

}  // namespace

std::int64_t TrainingJob::trainer_replicas() const { return integer_field(object(), "/spec/trainer/replicas", 1); }
const json& TrainingJob::trainer_template() const { return field(object(), "/spec/trainer/template"); }
const json& TrainingJob::trainer_pod() const { return field(object(), "/spec/trainer/template/spec"); }
const json& TrainingJob::trainer_containers() const { return PodSpec(trainer_pod()).containers(); }

const json& TrainingJob::trainer_job_field(std::string_view name) const {
  return member(field(object(), "/spec/trainer"), name);
}

const json& TrainingJob::seconds_from_end_to_removal() const { return trainer_job_field("ttlSecondsAfterFinished"); }

std::optional<std::int64_t> TrainingJob::elastic_min_replicas() const {
  if (trainer_job_field("elasticPolicy").is_null()) return std::nullopt;
  return integer_field(object(), "/spec/trainer/elasticPolicy/minReplicas", 1);
}

std::int64_t TrainingJob::backoff_limit() const {
  return integer_field(object(), "/spec/trainer/backoffLimit", kDefaultBackoffLimit);
}

std::size_t TrainingJob::training_container_index() const {
  const std::string name = text_field(object(), "/spec/trainer/container");
  const std::string default_name = Object(trainer_template()).annotation(kDefaultContainerAnnotation);
  const json& containers = trainer_containers();
  const std::size_t none = containers.size();
  std::size_t first_with_devices = none, default_one = none;
  for (std::size_t index = 0; index < containers.size(); ++index) {
    const std::string each = text_field(containers[index], "/name");
    if (each == name) return index;
    if (each == default_name) default_one = index;
    if (first_with_devices == none && accelerators_of_container(containers[index]) > 0) first_with_devices = index;
  }
  return first_with_devices < none ? first_with_devices : default_one < none ? default_one : 0;
}

std::string TrainingJob::placement() const { return text_field(object(), "/spec/dataWorkers/placement", "Auto"); }
std::string TrainingJob::mode() const { return text_field(object(), "/spec/mode", "Auto"); }
bool TrainingJob::suspended() const { return boolean_field(object(), "/spec/suspend"); }
const json& TrainingJob::worker_resources() const { return field(object(), "/spec/dataWorkers/resources"); }
const json& TrainingJob::worker_template() const { return field(object(), "/spec/dataWorkers/template"); }
AutoResources TrainingJob::auto_resources() const {
  return read_auto_resources(field(object(), "/spec/dataWorkers/autoResources"));
}

const json& TrainingJob::feeder_resources() const { return field(object(), "/spec/feeder/resources"); }

Result<std::int64_t> TrainingJob::arena_bytes() const {
  const json& arena = field(object(), "/spec/feeder/arena");
  if (arena.is_null()) return kube::parse_bytes(kDefaultArena);
  auto bytes = kube::parse_bytes(arena.is_string() ? arena.get<std::string>() : arena.dump());
  if (!bytes.ok()) return bytes.error().with_context("spec.feeder.arena");
  return bytes;
}

bool TrainingJob::found_data_only_in_trainer() const {
  const SeenCondition blocked = find_condition(conditions(), "WorkersBlocked");
  return blocked.is_true() && blocked.reason == kDataOnlyInTrainer;
}

std::optional<std::int64_t> TrainingJob::recommended_workers() const {
  const json& workers = field(object(), "/status/workers/recommended");
  if (!workers.is_number_integer()) return std::nullopt;
  return workers.get<std::int64_t>();
}

std::int64_t TrainingJob::restarts() const { return integer_field(object(), "/status/restarts"); }

std::int64_t TrainingJob::trainer_accelerators() const {
  const std::int64_t claimed = integer_field(object(), "/status/claimedAccelerators");
  return claimed > 0 && !device_claims_of_pod(trainer_pod()).empty() ? std::min(claimed, kMostDevices)
                                                                     : accelerators_of_pod(trainer_pod());
}

Result<TrainingJobView> view_training_job(const json& object) {
  const TrainingJob job(object);
  TrainingJobView view;
  view.name_space = job.name_space();
  view.name = job.name();
  view.uid = job.uid();
  view.deleting = job.deleting();
  view.finished = job.succeeded() || job.failed();
  SLUICE_TRY(view.mode, view_mode(object));
  SLUICE_TRY(view.placement, view_placement(object));
  view.trainer_replicas = static_cast<int>(job.trainer_replicas());
  view.is_gang = job.is_gang();
  view.backoff_limit = job.backoff_limit();
  view.restarts = job.restarts();
  view.min_workers = static_cast<int>(integer_field(object, "/spec/dataWorkers/min", 0));
  view.max_workers = static_cast<int>(integer_field(object, "/spec/dataWorkers/max", 8));
  if (job.worker_resources().is_null()) {
    view.auto_resources = job.auto_resources();
    view.worker = view.auto_resources->resources(view.auto_resources->first());
  } else {
    SLUICE_TRY(view.worker, stated_worker(object));
  }
  SLUICE_TRY(view.feeder_cpu_milli, milli_field(object, "/spec/feeder/resources/requests/cpu"));
  SLUICE_TRY(view.feeder_cpu_limit_milli, milli_field(object, "/spec/feeder/resources/limits/cpu"));
  view.trainer_gpus = job.trainer_accelerators();
  view.priority = static_cast<int>(integer_field(object, "/spec/priority", 0));
  view.weight = static_cast<int>(integer_field(object, "/spec/weight", 100));
  view.suspend = job.suspended();
  SLUICE_TRY_VOID(check_pod_template(job.trainer_template(), job.key().to_string() + " spec.trainer.template"));
  SLUICE_TRY_VOID(check_trainer_template(job, job.key().to_string() + " spec.trainer.template"));
  SLUICE_TRY_VOID(check_worker_template(job, job.key().to_string() + " spec.dataWorkers.template"));
  if (!data_only_in_trainer(job).empty() || job.found_data_only_in_trainer()) view.keep_local();
  view.likeness = likeness_of(job);
  view.queued_by_kueue = !job.label(kKueueQueueLabel).empty();
  if (accelerators_in(field(object, "/spec/dataWorkers/resources/limits")) > 0)
    return invalid_argument(job.key().to_string() +
                            " spec.dataWorkers.resources.limits must not hold accelerators: data workers see none, and "
                            "trainers would lack them; take it out");
  if (view.worker.request_millicores <= 0)
    return invalid_argument(job.key().to_string() +
                            " spec.dataWorkers.resources.requests.cpu must be positive; set it, for example 500m");
  return view;
}

json default_feeder_resources(std::int64_t arena_bytes) {
  constexpr std::int64_t kOwnBytes = std::int64_t{256} << 20;  // of the feeder and of the Python processes it starts
  return {{"requests", {{"cpu", "250m"}, {"memory", memory_text(arena_bytes + kOwnBytes)}}}};
}

bool has_default_feeder_resources(const TrainingJob& training_job) {
  static const json by_schema = default_feeder_resources(*kube::parse_bytes(kDefaultArena));
  return training_job.feeder_resources() == by_schema;
}

json with_feeder_resources(json training_job, json resources) {
  training_job["spec"]["feeder"]["resources"] = std::move(resources);
  return training_job;
}

}  // namespace sluice::api
