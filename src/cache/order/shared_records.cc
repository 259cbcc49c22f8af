#include "src/cache/order/shared_records.h"

#include <algorithm>

namespace sluice::cache {

SharedRecords::SharedRecords(const Limits& limits)
    : limits_(limits),
      orders_({.samples = limits.places, .jobs = limits.jobs, .bytes = limits.order_bytes}),
      residents_(orders_, limits.places, limits.capacity_bytes) {}

void SharedRecords::asked(Job job, Place place) {
  // Errors: the bound on jobs, or a place without a number. Time passes.
  if (!orders_.knows(job)) static_cast<void>(orders_.join(job, 0));
  const auto number = number_for(place);
  orders_.use(job, number.value_or(limits_.places));
  if (number) residents_.found(*number);
}

bool SharedRecords::holds(Place place) const {
  const auto number = number_of(place);
  return number && residents_.holds(*number);
}

SharedRecords::Admission SharedRecords::offer(Place place, std::uint32_t bytes) {
  const auto number = number_for(place);
  if (!number) return {};
  const ResidentSamples::Admission admission = residents_.fetched(*number, bytes);
  return {admission.is_kept, places_of(admission.evicted)};
}

SharedRecords::Fit SharedRecords::fit_of(Place place, std::uint32_t bytes, bool is_full) {
  const auto number = number_for(place);
  return number ? residents_.fit_of(*number, bytes, is_full) : Fit::kNot;
}

std::vector<SharedRecords::Place> SharedRecords::trim() { return places_of(residents_.trim()); }

std::vector<SharedRecords::Place> SharedRecords::places_of(const std::vector<std::uint32_t>& numbers) const {
  std::vector<Place> places;
  places.reserve(numbers.size());
  for (const std::uint32_t number : numbers) places.push_back(places_[number]);
  return places;
}

void SharedRecords::lost(Place place) {
  if (const auto number = number_of(place)) residents_.lost(*number);
}

std::map<SharedRecords::Job, double> SharedRecords::bytes_by_job() const {
  std::map<Job, double> bytes_by_job;
  residents_.for_some(kLookedAt, [&](std::uint32_t number, double bytes) {
    orders_.for_each_knowing(number, [&](Job job) { bytes_by_job[job] += bytes; });
  });
  return bytes_by_job;
}

// ---- what jobs announce ----

void SharedRecords::expect(std::span<const Place> places) {
  for (const Place place : places) static_cast<void>(number_for(place));
}

Result<void> SharedRecords::declare(Job job, std::span<const Place> places) {
  leave(job);
  forget_declarations_of_unknown_jobs();
  const Error too_many(ErrorCode::kResourceExhausted,
                       "no room for the order of " + std::to_string(places.size()) + " records");
  if (places.size() > limits_.places) return too_many;
  if (declared_bytes() + places.size() * sizeof(std::uint32_t) > limits_.order_bytes) return too_many;
  // In the map from the first number on, so that none is taken back for a later one.
  std::vector<std::uint32_t>& numbers = declared_[job];
  for (const Place place : places) {
    const auto number = number_for(place);
    if (!number) break;
    numbers.push_back(*number);
  }
  const bool is_whole = numbers.size() == places.size();
  const auto joined = is_whole ? orders_.join(job, static_cast<std::uint32_t>(places.size()), numbers) : too_many;
  if (!joined.ok()) declared_.erase(job);
  return joined;
}

void SharedRecords::forget_declarations_of_unknown_jobs() {
  std::erase_if(declared_, [&](const auto& declared) { return !orders_.knows(declared.first); });
}

std::uint64_t SharedRecords::declared_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [job, numbers] : declared_) bytes += numbers.size() * sizeof(numbers[0]);
  return bytes;
}

Result<std::vector<std::uint32_t>> SharedRecords::numbers_of(Job job, std::span<const std::uint32_t> indices) const {
  const auto declared = declared_.find(job);
  if (declared == declared_.end()) return not_found("job " + std::to_string(job) + " has declared no data set");
  std::vector<std::uint32_t> numbers;
  numbers.reserve(indices.size());
  for (const std::uint32_t index : indices) {
    if (index >= declared->second.size())
      return invalid_argument("index " + std::to_string(index) + " of " + std::to_string(declared->second.size()));
    numbers.push_back(declared->second[index]);
  }
  return numbers;
}

Result<void> SharedRecords::begin_epoch(Job job, std::span<const std::uint32_t> indices, std::uint32_t position) {
  SLUICE_TRY(const std::vector<std::uint32_t> numbers, numbers_of(job, indices));
  return orders_.begin_epoch(job, numbers, position);
}

Result<void> SharedRecords::announce_next_epoch(Job job, std::span<const std::uint32_t> indices) {
  SLUICE_TRY(const std::vector<std::uint32_t> numbers, numbers_of(job, indices));
  return orders_.announce_next_epoch(job, numbers);
}

void SharedRecords::leave(Job job) {
  orders_.leave(job);
  declared_.erase(job);
  take_back_at_ = 0;
}

// ---- numbers ----

std::optional<std::uint32_t> SharedRecords::number_of(Place place) const {
  const auto found = numbers_.find(place);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::uint32_t> SharedRecords::number_for(Place place) {
  if (const auto known = number_of(place)) return known;
  if (free_numbers_.empty() && places_.size() >= limits_.places) take_numbers_back();
  std::uint32_t number = 0;
  if (!free_numbers_.empty()) {
    number = free_numbers_.back();
    free_numbers_.pop_back();
    places_[number] = place;
  } else if (places_.size() < limits_.places) {
    number = static_cast<std::uint32_t>(places_.size());
    places_.push_back(place);
  } else {
    return std::nullopt;
  }
  numbers_.emplace(place, number);
  return number;
}

// A pass over all places, so that many questions lie between two of them.
void SharedRecords::take_numbers_back() {
  if (orders_.uses() < take_back_at_) return;
  take_back_at_ = orders_.uses() + limits_.places / 4;
  std::vector<bool> is_declared(places_.size());
  for (const auto& [job, numbers] : declared_)
    for (const std::uint32_t number : numbers) is_declared[number] = true;
  for (std::uint32_t number = 0; number < places_.size(); ++number) {
    if (is_declared[number] || residents_.holds(number) || orders_.is_known(number)) continue;
    numbers_.erase(places_[number]);
    free_numbers_.push_back(number);
  }
}

}  // namespace sluice::cache
