// All policies by name. To add one: a header and a source file in this folder, its line in registry.cc and in
// CMakeLists.txt, a row in docs/scheduling.md.
//
// Thread safety: free functions, from any thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "scheduler/model/config.h"
#include "scheduler/model/policy.h"
#include "src/base/result.h"

namespace sluice::scheduler {

// A fresh policy without any history. `config` is Sluice's; baselines read from it only what concerns the cluster, not
// the algorithm.  Errors: InvalidArgument, with the names there are.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const Config& config);

// In the order in which reports list them; the first is the baseline.
std::vector<std::string_view> policy_names();

}  // namespace sluice::scheduler
