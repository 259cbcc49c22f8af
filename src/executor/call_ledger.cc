#include "src/executor/call_ledger.h"

#include <algorithm>
#include <utility>

namespace sluice::executor {

void RecentMean::add(std::uint64_t count, double sum) {
  const auto weight = static_cast<double>(count);
  if (is_known()) sum = std::min(sum, kOutlier * weight * mean());
  if (weight_ + weight > kWeightMax && weight_ > 0) {
    const double kept = std::max(0.0, kWeightMax - weight) / weight_;
    weight_ *= std::min(1.0, kept);
    sum_ *= std::min(1.0, kept);
  }
  weight_ += weight;
  sum_ += sum;
}

void RecentMean::forget() {
  const double kept = std::min(1.0, kEnough / std::max(weight_, kEnough));
  weight_ *= kept;
  sum_ *= kept;
}

CallLedger::Advice CallLedger::next() {
  ++asked_since_trial_;
  if (!hits_pay_) {
    asked_since_trial_ = 0;
    return {.asks = true, .keeps = false, .rest = interval(hits_.mean(), call().mean())};
  }
  bool keeps = keeping_pays();
  if (!has_found_ && !keeps)
    return {.asks = true, .keeps = true, .rest = interval(call().mean() + 2 * stores_.mean(), call().mean())};
  if (!has_found_) return {};
  // A busy machine makes keeping slow, and nothing that is not done is seen to become faster.
  if (!keeps) keeps = ++asked_since_kept_ >= interval(call().mean() + stores_.mean(), call().mean());
  // What a call takes without cold ones within is not known before there are results: every second one is made.
  const bool is_first_trial = !calls_.is_known() && trials_ < kFirstTrialsMax;
  const std::uint64_t due = is_first_trial ? 2 : interval(call().mean(), hits_.mean());
  if (asked_since_trial_ < due) return {.asks = true, .keeps = keeps};
  asked_since_trial_ = 0;
  ++trials_;
  return {.asks = false, .keeps = false};
}

void CallLedger::add(const transport::CallReport& report) {
  calls_.add(report.calls, report.call_seconds);
  cold_calls_.add(report.cold_calls, report.cold_seconds);
  hits_.add(report.hits, report.hit_seconds);
  const bool kept_before = keeping_pays();
  stores_.add(report.stores, report.store_seconds);
  if (report.stores > 0) asked_since_kept_ = 0;
  if (kept_before && !keeping_pays()) stores_.forget();  // From now on it is seen at trials only.
  decide();
}

bool CallLedger::keeping_pays() const {
  if (!call().is_known() || !stores_.is_known()) return true;
  const double hit_seconds = hits_.is_known() ? hits_.mean() : stores_.mean();
  return call().mean() > hit_seconds + stores_.mean();
}

void CallLedger::decide() {
  if (!hits_.is_known() || !call().is_known()) return;
  const double limit = hits_pay_ ? kStopsAbove : kStartsBelow;
  const bool pays = hits_.mean() < limit * call().mean();
  if (std::exchange(hits_pay_, pays) == pays) return;
  // From now on one of the two is seen at trials only.
  (pays ? calls_ : hits_).forget();
}

// A trial takes the dearer of two ways once in so many calls.
std::uint64_t CallLedger::interval(double dear_seconds, double cheap_seconds) {
  const double loss = std::max(0.0, dear_seconds - cheap_seconds) / std::max(1e-9, kTrialShare * cheap_seconds);
  return static_cast<std::uint64_t>(
      std::clamp(loss, static_cast<double>(kTrialIntervalMin), static_cast<double>(kTrialIntervalMax)));
}

double CallLedger::saved_seconds(const transport::CallReport& report) const {
  if (!call().is_known()) return 0;
  return std::max(0.0, static_cast<double>(report.hits) * call().mean() - report.hit_seconds);
}

}  // namespace sluice::executor
