// Step "floor" of decide(): no job is worse off than with its part of its own hosts.
//
//   share   of a host: its room times the job's GPUs there / GPUs of the host
//   floor   min(share, max(1 core per GPU, 1.05 need))      need = the host's part of the knee; unknown: all of it
//
// Floors come before every other claim on these hosts: data workers of other jobs make way, but for those that nothing
// justifies taking; where these stand a feeder grows to its floor only as far as there is room, and nobody shrinks. The
// floors of a host add up to no more than its room, as the shares do.
#pragma once

#include <vector>

#include "scheduler/config.h"
#include "scheduler/contender.h"
#include "scheduler/node_table.h"

namespace sluice::scheduler {

// Notes the workers that stay where they are whatever happens (modes Off and Recommend, no metrics): neither feeders
// nor new trainers get their room.
void hold_workers(const std::vector<Contender>& contenders, NodeTable& nodes);

// Sets share, floor and most of every HostShare, and grants the floors. Feeders that are not this decision's to change
// (modes Off and Recommend) keep what they request.
void grant_floors(std::vector<Contender>& contenders, NodeTable& nodes, const Config& config);

// Jobs without usable metrics keep all of the feeders' CPU they have, as far as there is room beside the floors.
void hold_frozen(std::vector<Contender>& contenders, NodeTable& nodes);

// What the feeders may use of the node's idle CPU beside what is guaranteed to them.
std::int64_t limit_millicores(const Contender& contender, const HostShare& host, const NodeTable& nodes);

}  // namespace sluice::scheduler
