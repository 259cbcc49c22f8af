#include <algorithm>
#include <deque>
#include <random>
#include <utility>

#include "src/cache/order/testing/simulated_policy.h"

namespace sluice::cache::testing {
namespace {

constexpr std::uint32_t kNoSlot = UINT32_MAX;

// The samples that are cached, and which jobs have had each since it came.
class CachedSamples {
 public:
  CachedSamples(const SharedWorkload& workload, std::uint64_t capacity)
      : capacity_(capacity), slots_(workload.samples, kNoSlot), had_by_(workload.samples) {
    for (std::size_t job = 0; job < workload.orders.size(); ++job) all_jobs_ |= std::uint64_t{1} << job;
  }

  bool holds(std::uint32_t sample) const { return slots_[sample] != kNoSlot; }
  bool is_full() const { return samples_.size() >= capacity_; }
  const std::vector<std::uint32_t>& samples() const { return samples_; }

  void add(std::uint32_t sample) {
    slots_[sample] = static_cast<std::uint32_t>(samples_.size());
    samples_.push_back(sample);
    had_by_[sample] = 0;
  }

  // Whether it is cached, and now all jobs have had it.
  bool note(std::uint32_t sample, std::uint32_t job) {
    had_by_[sample] |= std::uint64_t{1} << job;
    return holds(sample) && had_by_[sample] == all_jobs_;
  }

  void remove(std::uint32_t sample) {
    const std::uint32_t slot = std::exchange(slots_[sample], kNoSlot);
    samples_[slot] = samples_.back();
    if (samples_[slot] != sample) slots_[samples_[slot]] = slot;
    samples_.pop_back();
  }

 private:
  const std::uint64_t capacity_;
  std::uint64_t all_jobs_ = 0;
  std::vector<std::uint32_t> samples_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> had_by_;
};

class OnDemand final : public SimulatedPolicy {
 public:
  OnDemand(const SharedWorkload& workload, std::uint64_t capacity)
      : workload_(workload), cached_(workload, capacity), jobs_(workload.orders.size()) {}

  std::string_view name() const override { return "substitution on demand"; }

  Served serve(const SharedUse& use) override {
    Job& job = jobs_[use.job];
    if (use.position == 0) {
      const auto& order = workload_.orders[use.job][use.epoch];
      job.left.assign(order.begin(), order.end());
    }
    if (job.batch.empty()) choose_batch(job);
    const std::uint32_t sample = job.batch.front();
    job.batch.pop_front();
    const bool is_hit = cached_.holds(sample);
    if (!is_hit && !cached_.is_full()) cached_.add(sample);
    if (cached_.note(sample, use.job)) cached_.remove(sample);
    return {sample, is_hit ? 0U : 1U};
  }

 private:
  static constexpr std::size_t kBatch = 32;
  static constexpr std::size_t kBatchesSeen = 10;
  struct Job {
    std::vector<std::uint32_t> left;  // of the epoch
    std::deque<std::uint32_t> batch;
  };

  // Of the next ten batches: those that are cached, and then as many others as are missing, in their order.
  void choose_batch(Job& job) {
    const std::size_t window = std::min(job.left.size(), kBatch * kBatchesSeen);
    std::stable_partition(job.left.begin(), job.left.begin() + static_cast<std::ptrdiff_t>(window),
                          [&](std::uint32_t sample) { return cached_.holds(sample); });
    const auto end = job.left.begin() + static_cast<std::ptrdiff_t>(std::min(job.left.size(), kBatch));
    job.batch.assign(job.left.begin(), end);
    job.left.erase(job.left.begin(), end);
  }

  const SharedWorkload& workload_;
  CachedSamples cached_;
  std::vector<Job> jobs_;
};

class Refilled final : public SimulatedPolicy {
 public:
  Refilled(const SharedWorkload& workload, std::uint64_t capacity)
      : workload_(workload), cached_(workload, capacity), jobs_(workload.orders.size()) {
    for (Job& job : jobs_) job.had.resize(workload.samples);
  }

  std::string_view name() const override { return "substitution, refilled"; }

  Served serve(const SharedUse& use) override {
    Job& job = jobs_[use.job];
    if (use.position == 0) {
      std::fill(job.had.begin(), job.had.end(), false);
      job.cursor = 0;
    }
    const auto& order = workload_.orders[use.job][use.epoch];
    while (job.had[order[job.cursor]]) ++job.cursor;
    std::uint32_t sample = order[job.cursor];
    if (!cached_.holds(sample)) sample = substitute_for(sample, job);
    job.had[sample] = true;
    std::uint32_t fetches = 0;
    if (!cached_.holds(sample)) {
      ++fetches;
      if (!cached_.is_full()) cached_.add(sample);
    }
    if (cached_.note(sample, use.job)) {
      cached_.remove(sample);
      fetches += refill();
    }
    return {sample, fetches};
  }

 private:
  struct Job {
    std::vector<bool> had;  // in this epoch
    std::size_t cursor = 0;
  };

  // From a random place on, the first cached sample that the job has not had.
  std::uint32_t substitute_for(std::uint32_t sample, const Job& job) {
    const auto& cached = cached_.samples();
    const std::size_t begin = cached.empty() ? 0 : random_() % cached.size();
    for (std::size_t i = 0; i < cached.size(); ++i) {
      const std::uint32_t other = cached[(begin + i) % cached.size()];
      if (!job.had[other]) return other;
    }
    return sample;
  }

  std::uint32_t refill() {
    if (cached_.samples().size() >= workload_.samples) return 0;
    std::uint32_t sample = random_() % workload_.samples;
    while (cached_.holds(sample)) sample = (sample + 1) % workload_.samples;
    cached_.add(sample);
    return 1;
  }

  const SharedWorkload& workload_;
  CachedSamples cached_;
  std::vector<Job> jobs_;
  std::mt19937 random_{29};
};

}  // namespace

std::unique_ptr<SimulatedPolicy> substitution_on_demand(const SharedWorkload& workload, std::uint64_t capacity) {
  return std::make_unique<OnDemand>(workload, capacity);
}

std::unique_ptr<SimulatedPolicy> substitution_refilled(const SharedWorkload& workload, std::uint64_t capacity) {
  return std::make_unique<Refilled>(workload, capacity);
}

}  // namespace sluice::cache::testing
