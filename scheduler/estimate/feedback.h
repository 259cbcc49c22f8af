// What the workers in force have brought corrects the estimate: the "feedback" and "judgement" of estimator.h.
//
// Both take a measurement that is new, usable and of enough batches, once the estimate holds demand and rates. They do
// nothing before exactly the workers in force have been at work during the whole window.
//
// Thread safety: functions on values.
#pragma once

#include "scheduler/model/config.h"
#include "scheduler/model/estimate.h"
#include "scheduler/model/snapshot.h"

namespace sluice::scheduler {

// Corrects the knee by its observed effect, at most once per window.
void feed_back(const Job& job, const Config& config, Estimate& estimate);

// Whether the last growth brought speed; if not, memory.useless_above_cores.
void judge_growth(const Job& job, const Config& config, Estimate& estimate);

}  // namespace sluice::scheduler
