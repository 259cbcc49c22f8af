// Whether an installation of Sluice works, by what the API server shows of it.
//
// Pure functions; thread-safe.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.h"

namespace sluice::cli {

struct Installation {
  std::vector<nlohmann::json> operator_pods;
  std::vector<nlohmann::json> leases;  // of the operator's namespace
  std::vector<nlohmann::json> jobs;    // TrainingJobs
};

struct Check {
  std::string name;
  bool passed = false;
  std::string finding;  // what was seen
  std::string way_out;  // empty where it passed
};

// In the order in which people should look at them.
std::vector<Check> examine(const Installation& installation, Clock::WallTimePoint now);

std::string render_checks(const std::vector<Check>& checks);
nlohmann::json checks_as_json(const std::vector<Check>& checks);

}  // namespace sluice::cli
