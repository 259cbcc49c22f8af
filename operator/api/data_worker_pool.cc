#include "operator/api/data_worker_pool.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/fingerprint.h"
#include "operator/api/labels.h"
#include "operator/api/names.h"

namespace sluice::api {

bool DataWorkerPool::is_of_its_job() const {
  const Controller owner = controller();
  return owner.kind == kTrainingJobKind && owner.name == job() && name() == job();
}

std::string DataWorkerPool::job() const { return text_field(object(), "/spec/jobName"); }
std::int64_t DataWorkerPool::replicas() const { return integer_field(object(), "/spec/replicas"); }

nlohmann::json DataWorkerPool::pod_template() const {
  nlohmann::json pod_template = field(object(), "/spec/template");
  const nlohmann::json& resources = field(object(), "/spec/workerResources");
  if (!resources.is_object() || list_field(pod_template, "/spec/containers").empty()) return pod_template;
  for (nlohmann::json& container : pod_template["spec"]["containers"])
    if (text_field(container, "/name") == kWorkerContainer) container["resources"] = resources;
  return pod_template;
}

bool DataWorkerPool::has_worker_resources() const { return field(object(), "/spec/workerResources").is_object(); }

ContainerResources DataWorkerPool::worker_resources() const {
  if (has_worker_resources()) return read_resources(field(object(), "/spec/workerResources"));
  for (const nlohmann::json& container : list_field(object(), "/spec/template/spec/containers"))
    if (text_field(container, "/name") == kWorkerContainer) return read_resources(member(container, "resources"));
  return {};
}

std::optional<WorkerSize> DataWorkerPool::worker_size() const {
  constexpr std::int64_t kMostMillicores = 1'000'000;
  const WorkerSize size = requested_size(field(object(), "/spec/workerResources"));
  const bool possible = size.millicores > 0 && size.millicores <= kMostMillicores && size.memory_bytes > 0 &&
                        size.memory_bytes < kMostOfQuantity;
  return possible ? std::optional(size) : std::nullopt;
}

std::string DataWorkerPool::priority_class() const {
  return text_field(object(), "/spec/template/spec/priorityClassName");
}

NodeRules DataWorkerPool::node_rules() const { return NodeRules(field(object(), "/spec/template/spec")); }
std::vector<SpreadTerm> DataWorkerPool::spread_terms() const {
  return api::spread_terms(field(object(), "/spec/template"), name_space());
}
std::int64_t DataWorkerPool::ready_replicas() const { return integer_field(object(), "/status/readyReplicas"); }
std::string DataWorkerPool::planned_workers() const { return annotation(kPlannedWorkersAnnotation); }

DataWorkerPoolDraft::DataWorkerPoolDraft(std::string_view name_space, std::string_view job)
    : ObjectDraft(kube::kDataWorkerPools, name_space, job) {
  spec() = {{"jobName", job}};
}

// A comparison finds what the template says and the pool does not. What was taken out of the template is found by its
// fingerprint.
void DataWorkerPoolDraft::set_worker_template(nlohmann::json pod_template) {
  metadata().set_annotation(kAppliedTemplateAnnotation, fingerprint(pod_template));
  spec()["template"] = std::move(pod_template);
}

nlohmann::json planned_workers_patch(std::int64_t workers) {
  return {{"metadata", {{"annotations", {{std::string(kPlannedWorkersAnnotation), std::to_string(workers)}}}}},
          {"spec", {{"replicas", workers}}}};
}

nlohmann::json worker_resources_patch(nlohmann::json resources) {
  return {{"spec", {{"workerResources", std::move(resources)}}}};
}

}  // namespace sluice::api
