// A fixed number of loader processes per GPU on the trainer's own hosts, the same for every job:
// DataLoader(num_workers=4).
//
// Each process is busy on at most one core, so a trainer never uses more. Beyond the share that goes with its GPUs it
// uses CPU that its neighbours leave idle.
//
// Source: PyTorch documentation, torch.utils.data.DataLoader; 4 is the default of PyTorch's ImageNet example.
#pragma once

#include <memory>

#include "scheduler/model/policy.h"

namespace sluice::scheduler {

std::unique_ptr<Policy> make_static_workers_policy(int loader_processes_per_gpu = 4);

}  // namespace sluice::scheduler
