// Which records a cache should hold, of those that several jobs ask for: what a tier calls.
//
//   asked(job, place) for each question, found or not;
//   fit_of(place, bytes) when it was not found: whether it is worth offering;
//   offer(place, bytes) when the record was fetched: whether to keep it, and what goes for it;
//   lost(place) when a record is gone for another reason.
// A tier that has records when it starts offers them first, before any job asks.
// That is enough: two thirds of what known orders save come from seeing who asks for what. A job may add to it what it
// knows: the places of its data set, once, and the order of each epoch as indices into them, 4 bytes each.
//
// A job is a training job: all of its processes that ask this cache are one, as each alone has another part of every
// epoch. The store of one process serves its own job, and needs none of this (segment_store.h).
//
// A place is a 64-bit hash, as in the index of segment_store.h. Two places of one hash are taken for one, which costs
// hits and no byte. Places get numbers for resident_samples.h. When those are used up, the numbers of records come back
// that are not held and that no job knows. If there are none, the question passes by.
//
// Bounds: Limits, where what was declared counts among the bytes of the orders; 60 bytes or so for each place. Thread
// safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/cache/order/resident_samples.h"

namespace sluice::cache {

class SharedRecords {
 public:
  using Job = SharedOrders::Job;
  using Place = std::uint64_t;

  struct Limits {
    std::uint64_t capacity_bytes = 0;
    std::uint32_t places = 1 << 21;
    std::size_t jobs = 64;
    std::uint64_t order_bytes = 256 << 20;
  };

  struct Admission {
    bool is_kept = false;
    std::vector<Place> evicted;
  };

  explicit SharedRecords(const Limits& limits);

  // A job that was not known joins. One too many is answered, and counts for nothing.
  void asked(Job job, Place place);
  bool holds(Place place) const;
  Admission offer(Place place, std::uint32_t bytes);
  void lost(Place place);

  // As ResidentSamples's.
  using Fit = ResidentSamples::Fit;
  Fit fit_of(Place place, std::uint32_t bytes, bool is_full);
  void set_capacity(std::uint64_t bytes) { residents_.set_capacity(bytes); }
  bool is_over_capacity() const { return residents_.is_over_capacity(); }
  std::vector<Place> trim();

  // Gives places their numbers: of many, some at a time, before they are declared.
  void expect(std::span<const Place> places);
  // All places of the job's data set; begins it anew. Errors: ResourceExhausted beyond a bound.
  Result<void> declare(Job job, std::span<const Place> places);
  // Indices into what was declared. Errors: InvalidArgument for one that is none; as SharedOrders's.
  Result<void> begin_epoch(Job job, std::span<const std::uint32_t> indices, std::uint32_t position = 0);
  Result<void> announce_next_epoch(Job job, std::span<const std::uint32_t> indices);
  void leave(Job job);

  // Bytes that are held of what each job has asked for or declared lately, whichever job has brought it. Jobs that have
  // paused count as well. An estimate from kLookedAt records, where there are more.
  static constexpr std::size_t kLookedAt = 1 << 14;
  std::map<Job, double> bytes_by_job() const;

  std::uint64_t bytes() const { return residents_.bytes(); }
  std::size_t size() const { return residents_.size(); }

 private:
  std::vector<Place> places_of(const std::vector<std::uint32_t>& numbers) const;
  std::optional<std::uint32_t> number_of(Place place) const;
  std::optional<std::uint32_t> number_for(Place place);
  void take_numbers_back();
  void forget_declarations_of_unknown_jobs();
  std::uint64_t declared_bytes() const;
  Result<std::vector<std::uint32_t>> numbers_of(Job job, std::span<const std::uint32_t> indices) const;

  const Limits limits_;
  SharedOrders orders_;
  ResidentSamples residents_;
  std::unordered_map<Place, std::uint32_t> numbers_;
  std::vector<Place> places_;                // of each number
  std::vector<std::uint32_t> free_numbers_;  // that had a place
  std::uint64_t take_back_at_ = 0;           // in uses: not before, unless a job leaves
  std::map<Job, std::vector<std::uint32_t>> declared_;
};

}  // namespace sluice::cache
