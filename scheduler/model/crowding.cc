#include "scheduler/model/crowding.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "scheduler/model/interference.h"

namespace sluice::scheduler {
namespace {

constexpr int kMeanWindows = 200;  // a job has trials and times without them in them
constexpr double kSumWindows = 40'000;
constexpr double kOtherBatch = 1.5;  // noise of 30 % on its samples is rarely so much
constexpr double kLeastTellingWindows = 20;
constexpr double kMarginStandardErrors = 4;
// To keep to the shares costs jobs about so much of their time where nothing interferes and CPU is short (P1 of the
// simulator).
constexpr double kHarmfulAbove = 0.015;
constexpr double kHarmlessAgainBelow = 0.005;  // what harms once harms little while hosts are less full
constexpr double kWindowsBeforeTrials = 100;
constexpr double kTrialSeconds = 300;
constexpr double kSettleSeconds = 30;
constexpr std::size_t kHostsATrialWhileUnknown = 4;
constexpr std::size_t kHostsATrial = 32;

}  // namespace

double Crowding::telling_windows() const { return kept_squares * kept_squares / kept_fourths; }

double Crowding::slope() const { return products / kept_squares; }

double Crowding::rise() const { return std::expm1(-slope()); }

double Crowding::standard_error() const {
  const double unexplained = std::max(compute_squares - slope() * products, 0.0);
  return std::sqrt(unexplained / (windows - 1) / kept_squares);
}

void Crowding::judge() {
  if (kept_squares <= 0 || telling_windows() < kLeastTellingWindows) return;
  const double margin = kMarginStandardErrors * standard_error();
  const double harmless_below = verdict == Verdict::kHarmful ? kHarmlessAgainBelow : kHarmfulAbove;
  if (-slope() - margin > kHarmfulAbove) verdict = Verdict::kHarmful;
  if (-slope() + margin < harmless_below) verdict = Verdict::kHarmless;
}

bool Crowding::keeps_to_shares(std::string_view host, double now_seconds) const {
  const bool by_verdict = verdict == Verdict::kHarmful;
  if (windows < kWindowsBeforeTrials) return by_verdict;
  const std::size_t turns = verdict == Verdict::kUnknown ? kHostsATrialWhileUnknown : kHostsATrial;
  const auto round = static_cast<std::size_t>(std::max(now_seconds - since_seconds, 0.0) / kTrialSeconds);
  const bool is_on_trial = (std::hash<std::string_view>()(host) + round) % turns == 0;
  return by_verdict != is_on_trial;
}

void CrowdingMeans::plan(int shared_hosts, int kept_hosts, double now_seconds) {
  const Feeders planned = shared_hosts == 0 || (kept_hosts > 0 && kept_hosts < shared_hosts) ? Feeders::kApart
                          : kept_hosts > 0                                                   ? Feeders::kKept
                                                                                             : Feeders::kFree;
  if (planned == feeders) return;
  feeders = planned;
  feeders_since_seconds = now_seconds;
}

void CrowdingMeans::take(double compute_seconds, double samples, double window_end_seconds, double window_seconds,
                         Crowding& all) {
  if (feeders == Feeders::kApart || !is_apart(window_end_seconds, window_seconds, through_seconds)) return;
  if (window_end_seconds - window_seconds < feeders_since_seconds + kSettleSeconds) return;
  if (samples > kOtherBatch * samples_per_batch || samples_per_batch > kOtherBatch * samples)
    *this = {.samples_per_batch = samples, .feeders = feeders, .feeders_since_seconds = feeders_since_seconds};
  through_seconds = window_end_seconds;
  windows = std::min(windows + 1, kMeanWindows);
  const double kept_off = (feeders == Feeders::kKept ? 1 : 0) - kept;
  const double compute_off = std::log(compute_seconds) - compute;
  samples_per_batch += (samples - samples_per_batch) / windows;
  kept += kept_off / windows;
  compute += compute_off / windows;
  if (windows == 1) return;  // it is the mean

  const double fading = all.windows >= kSumWindows ? 0.5 : 1;
  const double weight = 1 - 1.0 / windows;  // deviations from the mean before and after, multiplied
  if (all.windows == 0) all.since_seconds = window_end_seconds;
  all.through_seconds = std::max(all.through_seconds, window_end_seconds);
  all.windows = fading * all.windows + 1;
  all.kept_squares = fading * all.kept_squares + weight * kept_off * kept_off;
  all.kept_fourths = fading * all.kept_fourths + weight * weight * std::pow(kept_off, 4);
  all.compute_squares = fading * all.compute_squares + weight * compute_off * compute_off;
  all.products = fading * all.products + weight * kept_off * compute_off;
}

}  // namespace sluice::scheduler
