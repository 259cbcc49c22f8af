// What the operator saw when it last decided: the part "snapshot" of the page "/plan".
//
// Every field of scheduler/model/snapshot.h has its name there, in lowerCamelCase. The header says what it means.
//   unknown          absent
//   closedGroups     the numbers of the groups that are closed
//   countedDomains   the numbers of the domains that count
//   domains          null where the node has no domain
//   memory           the rates and the knee that the next decision builds on; the rest is the estimator's own
//
// Nodes take at most half of `most_bytes`, and jobs what is left. {"leftOut": {"nodes": 0, "jobs": 7000}} counts those
// without room, which are the last ones. Thread safety: pure function.
#pragma once

#include <cstddef>
#include <string>

#include "scheduler/model/snapshot.h"

namespace sluice::control {

// Room for 5,000 nodes and 2,000 jobs. Sixteen readers that wait for it do not fill the operator's memory.
inline constexpr std::size_t kSnapshotBytesMax = std::size_t{4} << 20;

// A JSON object.
std::string snapshot_text(const scheduler::ClusterSnapshot& snapshot, std::size_t most_bytes = kSnapshotBytesMax);

}  // namespace sluice::control
