#include "scheduler/model/crowding.h"

#include <algorithm>
#include <cmath>

#include "scheduler/model/interference.h"

namespace sluice::scheduler {
namespace {

constexpr int kMeanWindows = 40;
constexpr double kSumWindows = 4000;
constexpr double kOtherBatch = 1.5;  // noise of 30 % on its samples is rarely so much
constexpr double kLeastTellingWindows = 20;
constexpr double kMarginStandardErrors = 4;

}  // namespace

double Crowding::telling_windows() const { return load_squares * load_squares / load_fourths; }

double Crowding::slope() const { return products / load_squares; }

double Crowding::rise() const { return std::expm1(slope()); }

double Crowding::standard_error() const {
  const double unexplained = std::max(compute_squares - slope() * products, 0.0);
  return std::sqrt(unexplained / (windows - 1) / load_squares);
}

void Crowding::judge(const Config& config) {
  if (load_squares <= 0 || telling_windows() < kLeastTellingWindows) return;
  const double margin = kMarginStandardErrors * standard_error();
  if (slope() - margin > config.interference_above) is_proven = true;
  if (slope() + margin < config.interference_above) is_proven = false;
}

void CrowdingMeans::take(double at_load, double compute_seconds, double samples, double window_end_seconds,
                         double window_seconds, Crowding& all) {
  if (!is_apart(window_end_seconds, window_seconds, through_seconds)) return;
  if (samples > kOtherBatch * samples_per_batch || samples_per_batch > kOtherBatch * samples)
    *this = {.samples_per_batch = samples};
  through_seconds = window_end_seconds;
  windows = std::min(windows + 1, kMeanWindows);
  const double load_off = at_load - load;
  const double compute_off = std::log(compute_seconds) - compute;
  samples_per_batch += (samples - samples_per_batch) / windows;
  load += load_off / windows;
  compute += compute_off / windows;
  if (windows == 1) return;  // it is the mean

  const double kept = all.windows >= kSumWindows ? 0.5 : 1;
  const double weight = 1 - 1.0 / windows;  // deviations from the mean before and after, multiplied
  all.through_seconds = std::max(all.through_seconds, window_end_seconds);
  all.windows = kept * all.windows + 1;
  all.load_squares = kept * all.load_squares + weight * load_off * load_off;
  all.load_fourths = kept * all.load_fourths + weight * weight * std::pow(load_off, 4);
  all.compute_squares = kept * all.compute_squares + weight * compute_off * compute_off;
  all.products = kept * all.products + weight * load_off * compute_off;
}

}  // namespace sluice::scheduler
