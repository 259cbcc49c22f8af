// The page "/plan": the last decision, and what more workers or nodes would bring. `kubectl sluice plan` reads it.
//
//   {"decidedAt": "2026-11-22T05:00:00Z",
//    "cpu": {"grantedMilliCores": 800, "capacityMilliCores": 800},
//    "utilisation": {"jobs": 3, "ownCpuPercent": 46, "planPercent": 91, "anyPlanPercent": 97},
//    "jobs": [{"namespace": "default", "name": "vision", "workers": 4, "recommended": 4, "speedPercent": 97,
//              "reason": "NeedMet", "bottleneck": "NotDataBound", "gains": [{"workers": 1, "percent": 1.2}, ...]}],
//    "whatIf": {"nodes": 2, "nodeMilliCores": 32000, "utilisation": {...},
//               "jobs": [{"namespace": "default", "name": "vision", "workers": 3, "percent": 11.0,
//                         "text": "+3 workers: +11 % steps/s"}]}}
// Unknown figures are absent: speedPercent, gains, utilisation. whatIf is there if `nodes` was asked for.
//
// Questions, one at a time:
//   workers=3      the gains of three more workers, each job for itself; -2: of two fewer. Without: 1, 2 and 4 more
//   nodes=2x32     two more nodes with 32 cores free. Takes the time of two decisions.
//   snapshot=1     what the decision was taken from, as "snapshot": snapshot_page.h. Each job has the rest of its plan:
//                  victims, explanation, estimate, local (the feeders' CPU), supplyRatio, plannedSupplyRatio,
//                  nextWorkerGainPercent, as scheduler/model/plan.h has them
// Errors: 400 naming the field and its form, 503 before the first decision of this replica.
// Thread safety: pure function.
#pragma once

#include "operator/decide/decision_board.h"
#include "scheduler/model/config.h"
#include "src/http/server.h"

namespace sluice::control {

http::Page plan_page(const decide::Round& round, const scheduler::Config& config, const http::Query& query);

}  // namespace sluice::control
