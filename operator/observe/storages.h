// Storages whose bandwidth jobs share, by the configuration.
//
// Thread safety: pure functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "operator/config.h"
#include "scheduler/model/snapshot.h"

namespace sluice::observe {

std::vector<scheduler::Storage> view_storages(const std::map<std::string, control::SharedStorage>& storages);

// The name of the storage that the pods of the TrainingJob read, by their claims: the first one by name; empty: none.
std::string storage_of(const nlohmann::json& training_job,
                       const std::map<std::string, control::SharedStorage>& storages);

}  // namespace sluice::observe
