#include "operator/act/worker_parts.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "operator/api/labels.h"
#include "operator/api/trainer_data.h"

namespace sluice::act {

using namespace api;

namespace {

// Google's drivers put their sidecars into pods that ask for them, and mount nothing where there is none.
constexpr std::string_view kDriversOfAnnotations[] = {"gke-gcsfuse/", "gke-parallelstore/"};

// Istio (whose name may be a label, too), Linkerd, Kuma, Consul.
constexpr LabelValue kOutOfMeshes[] = {{"sidecar.istio.io/inject", "false"},
                                       {"linkerd.io/inject", "disabled"},
                                       {"kuma.io/sidecar-injection", "disabled"},
                                       {"consul.hashicorp.com/connect-inject", "false"}};

}  // namespace

void settle_in(ContainerDraft& container, const TrainingJob& training_job) {
  container.refer_to_own_resources();
  container.remove_mounts_at(mounts_of_one_pod(training_job));
}

void take_annotations_of_volumes(MetadataDraft& worker, const Object& trainer) {
  for (const auto& [name, value] : trainer.annotations().items())
    for (const std::string_view prefix : kDriversOfAnnotations)
      if (name.starts_with(prefix) && value.is_string()) worker.set_annotation(name, value.get<std::string>());
}

void stay_out_of_meshes(MetadataDraft& worker, const Object& trainer) {
  for (const auto& [name, value] : kOutOfMeshes) {
    if (trainer.annotation(name) == value) worker.set_annotation(name, value);
    if (trainer.label(name) == value) worker.set_label(name, value);
  }
}

}  // namespace sluice::act
