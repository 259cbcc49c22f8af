#include "scheduler/model/plan.h"

namespace sluice::scheduler {

std::string_view to_string(Confidence confidence) {
  switch (confidence) {
    case Confidence::kNone: return "None";
    case Confidence::kAssumed: return "Assumed";
    case Confidence::kMeasured: return "Measured";
  }
  return "None";
}

std::string_view to_string(Bottleneck bottleneck) {
  switch (bottleneck) {
    case Bottleneck::kUnknown: return "Unknown";
    case Bottleneck::kNotDataBound: return "NotDataBound";
    case Bottleneck::kGpuBound: return "GpuBound";
    case Bottleneck::kDataBoundStorage: return "DataBoundStorage";
    case Bottleneck::kDataBoundNetwork: return "DataBoundNetwork";
    case Bottleneck::kDataBoundCpu: return "DataBoundCpu";
    case Bottleneck::kDataBoundOther: return "DataBoundOther";
  }
  return "Unknown";
}

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::kNotRunning: return "NotRunning";
    case Reason::kModeOff: return "ModeOff";
    case Reason::kPlacementLocal: return "PlacementLocal";
    case Reason::kNoMetrics: return "NoMetrics";
    case Reason::kMetricsFallback: return "MetricsFallback";
    case Reason::kTooFewBatches: return "TooFewBatches";
    case Reason::kProbing: return "Probing";
    case Reason::kNotDataBound: return "NotDataBound";
    case Reason::kNeedMet: return "NeedMet";
    case Reason::kSated: return "Sated";
    case Reason::kExtrapolation: return "Extrapolation";
    case Reason::kMin: return "Min";
    case Reason::kMax: return "Max";
    case Reason::kCpu: return "Cpu";
    case Reason::kNoEffect: return "NoEffect";
    case Reason::kStorage: return "Storage";
    case Reason::kQuota: return "Quota";
    case Reason::kBudget: return "Budget";
    case Reason::kNetwork: return "Network";
    case Reason::kSpread: return "Spread";
    case Reason::kFlat: return "Flat";
  }
  return "NoMetrics";
}

}  // namespace sluice::scheduler
