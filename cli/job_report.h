// The status of TrainingJobs, for people (`top`, `why`) and for programs (-o json).
//
// Pure functions; thread-safe. Absent figures are "-", never 0.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/clock.h"

namespace sluice::cli {

// One row per job, in the order given. `max_width`: of the terminal; 0: none.
std::string render_top(const std::vector<nlohmann::json>& jobs, std::size_t max_width);

// The status of each job as it is, under "items".
nlohmann::json top_as_json(const std::vector<nlohmann::json>& jobs);

// `events`: of events.k8s.io/v1, about the job and its objects. Newest first, at most ten.
std::string render_why(const nlohmann::json& job, std::vector<nlohmann::json> events, Clock::WallTimePoint now);

// The job as it is, and its events under "events".
nlohmann::json why_as_json(nlohmann::json job, std::vector<nlohmann::json> events);

// "12s", "3m", "2h", "5d"; "-" for a time that is missing.
std::string age(const std::string& timestamp, Clock::WallTimePoint now);

}  // namespace sluice::cli
