// The operator's last decision, and what more workers or nodes would bring, for people.
//
// Pure functions; thread-safe. Absent figures are "-", never 0.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "src/base/result.h"

namespace sluice::cli {

// Of --what-if ("workers=3", "nodes=2x32"; empty: none) the target to ask the operator for: "/plan?nodes=2x32". With
// the snapshot that the decision was taken from: "/plan?snapshot=1". Errors: InvalidArgument naming the possible
// questions. The operator checks the numbers.
Result<std::string> plan_target(const std::string& what_if, bool with_snapshot);

// `page`: of operator/publish/plan_page.h. One row per job of `name_space` (empty: all), then the gain that CPU can
// bring to the cluster. `max_width`: of the terminal; 0: none.  Errors: DataLoss for a page of another shape.
Result<std::string> render_plan(const nlohmann::json& page, const std::string& name_space, std::size_t max_width);

}  // namespace sluice::cli
