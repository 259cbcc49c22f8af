#include "operator/observe/storages.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "operator/api/trainer_data.h"
#include "operator/api/training_job.h"

namespace sluice::observe {

std::vector<scheduler::Storage> view_storages(const std::map<std::string, control::SharedStorage>& storages) {
  std::vector<scheduler::Storage> seen;
  seen.reserve(storages.size());
  for (const auto& [name, storage] : storages) seen.push_back({name, storage.bytes_per_second});
  return seen;
}

std::string storage_of(const nlohmann::json& training_job,
                       const std::map<std::string, control::SharedStorage>& storages) {
  if (storages.empty()) return "";
  const api::TrainingJob job(training_job);
  const std::set<std::string> claims = api::claims_of_pods(job);
  for (const auto& [name, storage] : storages) {
    const auto is_read = [&](const std::string& claim) {
      const std::string prefix = job.name_space() + "/";
      return claim.starts_with(prefix) && claims.contains(claim.substr(prefix.size()));
    };
    if (std::any_of(storage.claims.begin(), storage.claims.end(), is_read)) return name;
  }
  return "";
}

}  // namespace sluice::observe
