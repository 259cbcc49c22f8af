#include "operator/act/worker_parts.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "operator/api/trainer_data.h"

namespace sluice::act {

using namespace api;

namespace {

// Google's drivers put their sidecars into pods that ask for them, and mount nothing where there is none.
constexpr std::string_view kDriversOfAnnotations[] = {"gke-gcsfuse/", "gke-parallelstore/"};

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

}  // namespace sluice::act
