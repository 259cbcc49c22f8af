#include "operator/act/node_cache_parts.h"

#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/container_draft.h"
#include "operator/api/names.h"
#include "operator/api/pod_spec_draft.h"
#include "operator/api/tls_secret.h"
#include "operator/api/trainer_template.h"

namespace sluice::act {

using namespace api;
using nlohmann::json;

namespace {

// The kubelet takes "$(NAME)" in a value for a variable, and "$$" for a dollar.
std::string as_value(const std::string& text) {
  std::string value;
  for (const char each : text) value += each == '$' ? "$$" : std::string(1, each);
  return value;
}

}  // namespace

json with_node_cache(json pod_template, std::string_view container, std::string_view job, const ClaimUids& claims,
                     const control::NodeCache& cache) {
  if (cache.address.empty()) return pod_template;
  PodTemplateDraft draft(std::move(pod_template));
  PodSpecDraft pod = draft.pod();
  if (json* const found = pod.find_container(container)) {
    ContainerDraft executor(*found);
    executor.mount(kCacheVolume, kCachePath, true);
    executor.add_variable("SLUICE_CACHE_SERVICE", cache.address);
    executor.add_variable("SLUICE_CACHE_SERVICE_FILES", kCachePath);
    executor.add_variable("SLUICE_CACHE_VOLUMES", as_value(mounted_volumes(pod.spec(), *found, claims)));
    // The authorities come with the job's Secret.
    pod.add_token_volume(kCacheVolume, kCacheAudience, secret_name(job), kCacheAuthoritiesEntry);
  }
  return draft.take();
}

}  // namespace sluice::act
