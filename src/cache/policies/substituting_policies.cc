#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include "src/cache/policies/cache_policy.h"

namespace sluice::cache {
namespace {

constexpr std::uint32_t kNoSlot = UINT32_MAX;

// The samples that are cached, and which jobs have had each since it came.
class CachedSamples {
 public:
  explicit CachedSamples(const CacheSpace& space)
      : capacity_(space.capacity_bytes), slots_(space.bytes.size(), kNoSlot), had_by_(space.bytes.size()) {}

  void join(std::uint32_t job) {
    if (bits_.contains(job) || all_jobs_ == UINT64_MAX) return;
    const std::uint64_t bit = ~all_jobs_ & (all_jobs_ + 1);  // the lowest that is free
    all_jobs_ |= bit;
    bits_[job] = bit;
  }

  void leave(std::uint32_t job) {
    const std::uint64_t bit = bit_of(job);
    bits_.erase(job);
    all_jobs_ &= ~bit;
    for (std::uint64_t& jobs : had_by_) jobs &= ~bit;
  }

  bool holds(std::uint32_t sample) const { return slots_[sample] != kNoSlot; }
  bool is_full() const { return samples_.size() >= capacity_; }
  const std::vector<std::uint32_t>& samples() const { return samples_; }

  void add(std::uint32_t sample) {
    slots_[sample] = static_cast<std::uint32_t>(samples_.size());
    samples_.push_back(sample);
    had_by_[sample] = 0;
  }

  // Whether it is cached, and now all of several jobs have had it.
  bool note(std::uint32_t sample, std::uint32_t job) {
    had_by_[sample] |= bit_of(job);
    return holds(sample) && had_by_[sample] == all_jobs_ && std::popcount(all_jobs_) > 1;
  }

  void remove(std::uint32_t sample) {
    const std::uint32_t slot = std::exchange(slots_[sample], kNoSlot);
    samples_[slot] = samples_.back();
    if (samples_[slot] != sample) slots_[samples_[slot]] = slot;
    samples_.pop_back();
  }

 private:
  std::uint64_t bit_of(std::uint32_t job) const {
    const auto found = bits_.find(job);
    return found == bits_.end() ? 0 : found->second;
  }

  const std::uint64_t capacity_;
  std::uint64_t all_jobs_ = 0;
  std::map<std::uint32_t, std::uint64_t> bits_;  // of each job
  std::vector<std::uint32_t> samples_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint64_t> had_by_;
};

class OnDemand final : public CachePolicy {
 public:
  explicit OnDemand(const CacheSpace& space) : cached_(space) {}

  std::string_view name() const override { return "substitution on demand"; }

  void begin_epoch(std::uint32_t name, const std::vector<std::uint32_t>& order, std::uint32_t position) override {
    cached_.join(name);
    Job& job = jobs_[name];
    job.left.assign(order.begin() + position, order.end());
    job.batch.clear();
  }

  Served serve(std::uint32_t name, std::uint32_t /*sample*/) override {
    Job& job = jobs_[name];
    if (job.batch.empty()) choose_batch(job);
    const std::uint32_t sample = job.batch.front();
    job.batch.pop_front();
    const bool is_hit = cached_.holds(sample);
    if (!is_hit && !cached_.is_full()) cached_.add(sample);
    if (cached_.note(sample, name)) cached_.remove(sample);
    return {sample, is_hit ? 0U : 1U};
  }

  void leave(std::uint32_t name) override {
    cached_.leave(name);
    jobs_.erase(name);
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

  CachedSamples cached_;
  std::map<std::uint32_t, Job> jobs_;
};

class Refilled final : public CachePolicy {
 public:
  explicit Refilled(const CacheSpace& space)
      : samples_(static_cast<std::uint32_t>(space.bytes.size())), cached_(space) {}

  std::string_view name() const override { return "substitution, refilled"; }

  void begin_epoch(std::uint32_t name, const std::vector<std::uint32_t>& order, std::uint32_t position) override {
    cached_.join(name);
    Job& job = jobs_[name];
    job.order = order;
    job.cursor = position;
    job.had.assign(samples_, false);
    for (std::uint32_t i = 0; i < position; ++i) job.had[order[i]] = true;
  }

  Served serve(std::uint32_t name, std::uint32_t /*sample*/) override {
    Job& job = jobs_[name];
    while (job.had[job.order[job.cursor]]) ++job.cursor;
    std::uint32_t sample = job.order[job.cursor];
    if (!cached_.holds(sample)) sample = substitute_for(sample, job);
    job.had[sample] = true;
    std::uint32_t fetches = 0;
    if (!cached_.holds(sample)) {
      ++fetches;
      if (!cached_.is_full()) cached_.add(sample);
    }
    if (cached_.note(sample, name)) {
      cached_.remove(sample);
      fetches += refill();
    }
    return {sample, fetches};
  }

  void leave(std::uint32_t name) override {
    cached_.leave(name);
    jobs_.erase(name);
  }

 private:
  struct Job {
    std::vector<std::uint32_t> order;
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
    if (cached_.samples().size() >= samples_) return 0;
    std::uint32_t sample = random_() % samples_;
    while (cached_.holds(sample)) sample = (sample + 1) % samples_;
    cached_.add(sample);
    return 1;
  }

  const std::uint32_t samples_;
  CachedSamples cached_;
  std::map<std::uint32_t, Job> jobs_;
  std::mt19937 random_{29};
};

}  // namespace

MadeCachePolicy substitution_on_demand(const CacheSpace& space) { return std::make_unique<OnDemand>(space); }

MadeCachePolicy substitution_refilled(const CacheSpace& space) { return std::make_unique<Refilled>(space); }

}  // namespace sluice::cache
