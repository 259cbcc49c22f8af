// As a part of which job a process asks the node's cache: all processes of one training have the same number.
//
//   in a cluster                      namespace and name of the training job
//   where a launcher started it       what the ranks of one launch have in common: run or batch job, rendezvous
//   any other process                 a number of its own
// Two launches that say the same, one after the other, are taken for one that goes on: this costs hits, and no byte.
// Thread safety: a pure function.
#pragma once

#include <functional>
#include <string>

#include "src/cache/node_cache_messages.h"
#include "src/executor/executor_metrics.h"

namespace sluice::program {

// "" for a variable that is not set.
using Environment = std::function<std::string(const char* name)>;

// `own`: a number that no other process has.
cache::JobId cache_job(const executor::JobLabels& labels, const Environment& environment, std::uint64_t own);

}  // namespace sluice::program
