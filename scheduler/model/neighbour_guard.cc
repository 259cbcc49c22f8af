#include "scheduler/model/neighbour_guard.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice::scheduler {
namespace {

constexpr int kLeastWindows = 10;      // of the reference, and of the growth that is judged by it
constexpr double kStandardErrors = 5;  // that a rise must exceed

// Keeps the mean of the last windows: a trainer changes without its neighbours, too.
void take_newest(double value, RunningMean& mean) {
  if (mean.count >= kSettledWindows) {
    mean.count /= 2;
    mean.squares /= 2;
  }
  mean.take(value);
}

bool same_nodes(const std::vector<NodeLoad>& a, const std::vector<NodeLoad>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const NodeLoad& one, const NodeLoad& other) { return one.node == other.node; });
}

// Whether `holds` for the load of any node before and now. REQUIRES: same nodes
template <typename Holds>
bool any_node(const std::vector<NodeLoad>& before, const std::vector<NodeLoad>& now, const Holds& holds) {
  for (std::size_t i = 0; i < before.size(); ++i)
    if (holds(before[i], now[i])) return true;
  return false;
}

bool feeders_grew(const NodeLoad& before, const NodeLoad& now) {
  return has_grown(before.feeder_cores(), now.feeder_cores());
}

bool feeders_shrank(const NodeLoad& before, const NodeLoad& now) { return feeders_grew(now, before); }

bool other_load_grew(const NodeLoad& before, const NodeLoad& now) {
  return has_grown(before.other_cores, now.other_cores);
}

void begin_anew(NeighbourWindow&& window, NeighbourGuard& guard) {
  guard = {.through_seconds = window.end_seconds, .load = std::move(window.load), .cap = std::move(guard.cap)};
  guard.reference.take(window.compute_seconds);
  guard.reference_batch.take(window.samples_per_batch);
}

// Of the nodes where feeders have grown.
void set_cap(const NeighbourWindow& window, NeighbourGuard& guard) {
  NeighbourCap cap;
  cap.since_seconds = window.end_seconds;
  cap.rise = guard.grown.mean / guard.reference.mean - 1;
  double most = 0;
  for (std::size_t i = 0; i < guard.load.size(); ++i) {
    if (!feeders_grew(guard.load[i], window.load[i])) continue;
    for (const FeederUse& use : window.load[i].feeders) {
      const double growth = use.cores - guard.load[i].cores_of(use.job);
      if (growth <= most) continue;
      most = growth;
      cap.most_grown = use.job;
      cap.at_node = window.load[i].node;
    }
    cap.load.push_back(guard.load[i]);
  }
  guard.cap = std::move(cap);
  guard.grown = guard.grown_batch = {};
}

void judge_growth(NeighbourWindow&& window, const Config& config, NeighbourGuard& guard) {
  guard.grown.take(window.compute_seconds);
  guard.grown_batch.take(window.samples_per_batch);
  if (guard.grown.count < kLeastWindows) return;
  const double other_batch = std::abs(guard.grown_batch.mean / guard.reference_batch.mean - 1);
  if (other_batch > config.interference_above) {
    begin_anew(std::move(window), guard);
  } else if (has_risen(guard.reference, guard.grown, kStandardErrors, config)) {
    set_cap(window, guard);
  } else if (guard.grown.count >= kSettledWindows) {  // they did no harm
    guard.reference = guard.grown;
    guard.reference_batch = guard.grown_batch;
    guard.load = std::move(window.load);
    guard.grown = guard.grown_batch = {};
  }
}

}  // namespace

double NodeLoad::feeder_cores() const {
  double sum = 0;
  for (const FeederUse& use : feeders) sum += use.cores;
  return sum;
}

double NodeLoad::cores_of(const JobId& job) const {
  for (const FeederUse& use : feeders)
    if (use.job == job) return use.cores;
  return 0;
}

void NeighbourGuard::take(NeighbourWindow window, const Config& config) {
  if (!is_apart(window.end_seconds, window.seconds, through_seconds)) return;
  through_seconds = window.end_seconds;
  if (cap && !holds(window.end_seconds, config)) cap.reset();
  if (reference.count == 0 || !same_nodes(load, window.load)) return begin_anew(std::move(window), *this);
  if (any_node(load, window.load, other_load_grew)) {
    if (++unclear >= kSettledWindows) begin_anew(std::move(window), *this);
    return;
  }
  unclear = 0;
  if (any_node(load, window.load, feeders_grew)) {
    if (cap) return;  // they are about to shrink
    if (reference.count < kLeastWindows) return begin_anew(std::move(window), *this);
    return judge_growth(std::move(window), config, *this);
  }
  if (any_node(load, window.load, feeders_shrank)) return begin_anew(std::move(window), *this);
  take_newest(window.compute_seconds, reference);
  take_newest(window.samples_per_batch, reference_batch);
  grown = grown_batch = {};
}

bool NeighbourGuard::holds(double now_seconds, const Config& config) const {
  return cap && now_seconds - cap->since_seconds < config.useless_retry_seconds;
}

}  // namespace sluice::scheduler
