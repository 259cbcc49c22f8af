#include "scheduler/allocate/budgets.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::scheduler {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

}  // namespace

Budgets::Budgets(const ClusterSnapshot& snapshot) : of_all_(snapshot.budget_per_hour.value_or(kUnlimited)) {
  of_quotas_.reserve(snapshot.quotas.size());
  for (const Quota& quota : snapshot.quotas) of_quotas_.push_back(quota.budget_per_hour.value_or(kUnlimited));
}

bool Budgets::bound(const JobAllocation& allocation) const { return std::isfinite(left_for(allocation)); }

double Budgets::left_for(const JobAllocation& allocation, const Refund& refund) const {
  const double left = of_all_ + refund.all;
  if (allocation.quota == kNowhere) return left;
  return std::min(left, of_quotas_[allocation.quota] + refund.of_its_quota);
}

bool Budgets::quota_is_tighter(const JobAllocation& allocation) const {
  return allocation.quota != kNowhere && of_quotas_[allocation.quota] < of_all_;
}

void Budgets::spend(const JobAllocation& allocation, double price_per_hour) {
  of_all_ -= price_per_hour;
  if (allocation.quota != kNowhere) of_quotas_[allocation.quota] -= price_per_hour;
}

}  // namespace sluice::scheduler
