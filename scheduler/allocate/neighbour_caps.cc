#include "scheduler/allocate/neighbour_caps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>

#include "scheduler/estimate/estimator.h"
#include "scheduler/model/neighbour_guard.h"

namespace sluice::scheduler {
namespace {

// Nodes with more trainers than this are not watched: nothing there can be told apart.
constexpr int kMostTrainers = 32;
// Where feeders and data workers leave half of a host idle, no feeder keeps another one short, nor a trainer.
constexpr double kFullFrom = 0.5;

// A job among the trainers of a node, with all that the others there need to know of it.
struct Place {
  const JobId* job = nullptr;
  int allocation = 0;
  int host = 0;
  bool adjustable = false;
  double cores = 0;  // for data: that feeders use, where the plan sets their CPU; else that they may use
  // Of its measurement's window; none that can be used overlaps with nothing.
  double begin_seconds = std::numeric_limits<double>::infinity();
  double end_seconds = -std::numeric_limits<double>::infinity();
};

double busy_cores(const JobAllocation& allocation, const HostShare& host) {
  return allocation.estimate->busy_local_cores * host.part;
}

Place place_of(int index, int host, const JobAllocation& allocation) {
  Place place{&allocation.job->id, index, host, allocation.adjustable};
  place.cores = allocation.adjustable ? busy_cores(allocation, allocation.hosts[host])
                                      : static_cast<double>(allocation.job->hosts[host].limit_millicores) / 1000;
  if (!allocation.estimate->metrics_usable()) return place;
  const Measurement& m = *allocation.job->observation.measurement;
  place.begin_seconds = m.window_end_seconds - m.window_seconds;
  place.end_seconds = m.window_end_seconds;
  return place;
}

class Trainers {
 public:
  Trainers(const std::vector<JobAllocation>& allocations, int nodes) : begin_(nodes + 2) {
    for_each(allocations, [&](int node, int, int) { ++begin_[node + 2]; });
    std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
    places_.resize(begin_.back());
    for_each(allocations, [&](int node, int index, int host) {
      places_[begin_[node + 1]++] = place_of(index, host, allocations[index]);
    });
  }

  // In the order of the allocations.
  std::span<const Place> on(int node) const {
    return std::span(places_).subspan(begin_[node], begin_[node + 1] - begin_[node]);
  }

 private:
  template <typename Visit>
  static void for_each(const std::vector<JobAllocation>& allocations, const Visit& visit) {
    for (int i = 0; i < std::ssize(allocations); ++i)
      for (int host = 0; host < std::ssize(allocations[i].hosts) && allocations[i].job->running; ++host)
        if (const int node = allocations[i].hosts[host].node; node != kNowhere) visit(node, i, host);
  }

  std::vector<Place> places_;
  std::vector<int> begin_;  // of each node's places
};

// None: the use of a feeder there is not known.
std::optional<NodeLoad> load_on(int trainer, const HostShare& host, const std::vector<JobAllocation>& allocations,
                                const Trainers& trainers, const NodeTable& nodes) {
  const std::span<const Place> places = trainers.on(host.node);
  if (std::ssize(places) > kMostTrainers) return std::nullopt;
  const Measurement& m = *allocations[trainer].job->observation.measurement;
  NodeLoad load{std::string(nodes.name(host.node))};
  load.feeders.reserve(places.size());
  load.other_cores =
      busy_cores(allocations[trainer], host) + static_cast<double>(nodes[host.node].standing_millicores) / 1000;
  for (const Place& place : places) {
    if (place.allocation == trainer) continue;
    if (!place.adjustable) {
      load.other_cores += place.cores;
      continue;
    }
    const bool overlaps =
        place.end_seconds > m.window_end_seconds - m.window_seconds && m.window_end_seconds > place.begin_seconds;
    if (!overlaps) return std::nullopt;
    load.feeders.push_back({*place.job, place.cores});
  }
  return load;
}

std::optional<NeighbourWindow> window_of(int trainer, const std::vector<JobAllocation>& allocations,
                                         const Trainers& trainers, const NodeTable& nodes) {
  const JobAllocation& allocation = allocations[trainer];
  const Measurement& m = *allocation.job->observation.measurement;
  NeighbourWindow window{m.window_end_seconds, m.window_seconds, compute_seconds_per_batch(*allocation.job),
                         m.samples_per_second * m.window_seconds / m.batches_in_window};
  window.load.reserve(allocation.hosts.size());
  for (const HostShare& host : allocation.hosts) {
    if (host.node == kNowhere) continue;
    std::optional<NodeLoad> load = load_on(trainer, host, allocations, trainers, nodes);
    if (!load) return std::nullopt;
    window.load.push_back(std::move(*load));
  }
  if (window.load.empty()) return std::nullopt;
  return window;
}

bool is_news(const JobAllocation& trainer) {
  const Estimate& estimate = *trainer.estimate;
  if (!trainer.job->running || !estimate.metrics_usable() || !estimate.enough_batches) return false;
  const Measurement& m = *trainer.job->observation.measurement;
  return is_apart(m.window_end_seconds, m.window_seconds, estimate.memory->neighbours.through_seconds);
}

// Busy cores over room, of the fullest of the trainer's nodes.
double load_around(const JobAllocation& trainer, const NeighbourWindow& window, const NodeTable& nodes) {
  double most = 0;
  std::size_t at = 0;
  for (const HostShare& host : trainer.hosts) {
    if (host.node == kNowhere) continue;
    const NodeLoad& load = window.load[at++];
    const std::int64_t room = std::max<std::int64_t>(nodes[host.node].room_millicores, 1);
    most = std::max(most, 1000 * (load.feeder_cores() + load.other_cores) / static_cast<double>(room));
  }
  return most;
}

Crowding newest_crowding(const std::vector<JobAllocation>& allocations) {
  Crowding newest;
  for (const JobAllocation& allocation : allocations) {
    const auto& memory = allocation.estimate->memory;
    if (memory && memory->crowding.through_seconds > newest.through_seconds) newest = memory->crowding;
  }
  return newest;
}

// By the verdict and its trials, where its hosts have several trainers.
void keep_to_shares(const Crowding& crowding, const Trainers& trainers, const NodeTable& nodes, double now_seconds,
                    JobAllocation& allocation) {
  int shared = 0, kept = 0;
  for (HostShare& host : allocation.hosts) {
    if (host.node == kNowhere || trainers.on(host.node).size() < 2) continue;
    host.keeps_to_share = crowding.keeps_to_shares(nodes.name(host.node), now_seconds);
    ++shared;
    kept += host.keeps_to_share ? 1 : 0;
  }
  if (allocation.estimate->memory) allocation.estimate->memory->crowding_means.plan(shared, kept, now_seconds);
}

void cap_neighbours(const JobAllocation& trainer, std::vector<JobAllocation>& allocations, const Trainers& trainers) {
  for (const NodeLoad& load : trainer.estimate->memory->neighbours.cap->load) {
    const auto host = std::find_if(trainer.job->hosts.begin(), trainer.job->hosts.end(),
                                   [&](const TrainerHost& at) { return at.node == load.node; });
    if (host == trainer.job->hosts.end()) continue;  // it has moved
    const int node = trainer.hosts[host - trainer.job->hosts.begin()].node;
    if (node == kNowhere) continue;
    for (const Place& place : trainers.on(node)) {
      JobAllocation& other = allocations[place.allocation];
      if (&other == &trainer || !other.adjustable) continue;
      const std::int64_t millicores = std::llround(1000 * load.cores_of(other.job->id));
      HostShare& share = other.hosts[place.host];
      if (millicores >= share.cap) continue;
      share.cap = millicores;
      share.guarded = &trainer;
    }
  }
}

}  // namespace

void guard_neighbours(std::vector<JobAllocation>& allocations, const NodeTable& nodes, double now_seconds,
                      const Config& config) {
  const Trainers trainers(allocations, nodes.size());
  Crowding crowding = newest_crowding(allocations);
  for (int trainer = 0; trainer < std::ssize(allocations); ++trainer) {
    if (!is_news(allocations[trainer])) continue;
    auto window = window_of(trainer, allocations, trainers, nodes);
    if (!window) continue;
    EstimatorMemory& memory = *allocations[trainer].estimate->memory;
    if (load_around(allocations[trainer], *window, nodes) > kFullFrom)
      memory.crowding_means.take(window->compute_seconds, window->samples_per_batch, window->end_seconds,
                                 window->seconds, crowding);
    memory.neighbours.take(std::move(*window), config);
  }
  crowding.judge();
  for (JobAllocation& trainer : allocations) {
    keep_to_shares(crowding, trainers, nodes, now_seconds, trainer);
    if (!trainer.estimate->memory) continue;
    trainer.estimate->memory->crowding = crowding;
    if (trainer.job->running && trainer.estimate->memory->neighbours.holds(now_seconds, config))
      cap_neighbours(trainer, allocations, trainers);
  }
}

}  // namespace sluice::scheduler
