#include "scheduler/simulator/policies/sluice.h"

#include "scheduler/decide/decide.h"

namespace sluice::scheduler {

Plan SluicePolicy::decide(const ClusterSnapshot& snapshot) { return scheduler::decide(snapshot, config_); }

}  // namespace sluice::scheduler
