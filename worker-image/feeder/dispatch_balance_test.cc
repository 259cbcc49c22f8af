// Ranks that train in step share one feeder, and one of them has heavy samples: how long the slowest rank waits, beside
// a feeder that serves requests in the order in which they came. Dispatch with virtual threads in virtual time.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "src/base/testing/catch.h"
#include "worker-image/feeder/dispatch.h"

namespace sluice::feeder {
namespace {

constexpr std::size_t kRanks = 4;
constexpr std::size_t kThreads = 4;
constexpr std::size_t kWindow = 8;
constexpr std::uint64_t kBatches = 150;
constexpr std::chrono::milliseconds kMoment{1};

enum class Order { kByRank, kFirstComeFirstServed };

// Of a rank's batch.
using Cost = std::function<double(std::size_t rank, std::uint64_t batch)>;

// Uniform in [0, 1), the same for the same batch.
double drawn(std::size_t rank, std::uint64_t batch) {
  std::uint64_t x = batch * 0x9E3779B97F4A7C15U + rank * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 31)) * 0x94D049BB133111EBU;
  return static_cast<double>((x ^ (x >> 29)) >> 11) * 0x1.0p-53;
}

class Host {
 public:
  Host(Order order, double step_seconds, Cost cost)
      : order_(order), step_seconds_(step_seconds), cost_(std::move(cost)) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) dispatch_.add_client(client_of(rank));
    dispatch_.add_executor(kLocalExecutor, kThreads, kThreads);
  }

  // Seconds that the rank which waits longest has waited by the end.
  double longest_wait_seconds() {
    while (step_ < kBatches) {
      now_ += kMoment;
      work();
      train();
      for (std::size_t rank = 0; rank < kRanks; ++rank) ask(rank);
      for (const Assignment& started : dispatch_.assign(now_)) held_.push_back(started.request);
    }
    return *std::max_element(waited_seconds_.begin(), waited_seconds_.end());
  }

 private:
  struct Making {
    std::size_t rank = 0;
    std::uint64_t batch = 0;
    double seconds_left = 0;
  };
  static constexpr double kMomentSeconds = std::chrono::duration<double>(kMoment).count();

  // Requests of one client are served in the order in which they came.
  ClientId client_of(std::size_t rank) const { return order_ == Order::kByRank ? 1 + rank : 1; }

  void work() {
    std::vector<RequestId> made;
    for (std::size_t i = 0; i < std::min(kThreads, held_.size()); ++i) {
      Making& making = makings_.at(held_[i]);
      making.seconds_left -= kMomentSeconds;
      if (making.seconds_left <= 0) made.push_back(held_[i]);
    }
    for (const RequestId id : made) {
      dispatch_.answer(kLocalExecutor, id, now_);
      ready_[makings_.at(id).rank].insert(makings_.at(id).batch);
      std::erase(held_, id);
    }
  }

  // All ranks begin a step together, as gradients are exchanged.
  void train() {
    computing_seconds_ = std::max(0.0, computing_seconds_ - kMomentSeconds);
    if (computing_seconds_ > 0) return;
    bool all_there = true;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      if (ready_[rank].contains(step_)) continue;
      waited_seconds_[rank] += kMomentSeconds;
      all_there = false;
    }
    if (!all_there) return;
    ++step_;
    computing_seconds_ = step_seconds_;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      ready_[rank].erase(step_ - 1);
      dispatch_.set_pace(client_of(rank), rank, step_, step_seconds_, now_);
    }
  }

  void ask(std::size_t rank) {
    for (; asked_[rank] < std::min(step_ + kWindow, kBatches); ++asked_[rank]) {
      makings_[++last_] = {rank, asked_[rank], cost_(rank, asked_[rank])};
      dispatch_.submit(client_of(rank), rank, 1, last_, 32);
    }
    if (order_ == Order::kByRank) dispatch_.set_held(client_of(rank), ready_[rank].size());
  }

  const Order order_;
  const double step_seconds_;
  const Cost cost_;
  Dispatch dispatch_;
  Dispatch::TimePoint now_{};
  std::uint64_t step_ = 0;
  double computing_seconds_ = 0;
  RequestId last_ = 0;
  std::map<RequestId, Making> makings_;
  std::vector<RequestId> held_;  // by the executor, the oldest first
  std::array<std::set<std::uint64_t>, kRanks> ready_;
  std::array<std::uint64_t, kRanks> asked_{};
  std::array<double, kRanks> waited_seconds_{};
};

TEST_CASE("four ranks in step, one with heavy samples: the slowest one waits less than first come, first served") {
  struct Row {
    const char* situation;
    double step_seconds;
    Cost cost;
    double want_ratio;
  };
  const Row rows[] = {
      {"each of its batches costs four times as much", 0.1,
       [](std::size_t rank, std::uint64_t) { return rank == 3 ? 0.2 : 0.05; }, 1.5},
      {"each fifth of its batches, by chance, costs ten times as much", 0.1,
       [](std::size_t rank, std::uint64_t batch) { return rank == 3 && drawn(rank, batch) < 0.2 ? 0.5 : 0.05; }, 1.5},
      {"every fourth stretch of ten batches costs six times as much", 0.15,
       [](std::size_t rank, std::uint64_t batch) { return rank == 3 && batch / 10 % 4 == 0 ? 0.3 : 0.05; }, 1.5},
      {"the threads are too few for any order", 0.05,
       [](std::size_t rank, std::uint64_t) { return rank == 3 ? 0.2 : 0.05; }, 0.99},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const double first_come = Host(Order::kFirstComeFirstServed, row.step_seconds, row.cost).longest_wait_seconds();
    const double by_rank = Host(Order::kByRank, row.step_seconds, row.cost).longest_wait_seconds();
    CAPTURE(first_come, by_rank);
    CHECK(first_come >= row.want_ratio * by_rank);
  }
}

}  // namespace
}  // namespace sluice::feeder
