#include "worker-image/feeder/places.h"

#include <algorithm>
#include <functional>

namespace sluice::feeder {
namespace {

constexpr double kSecondsMax = 1e6;                                 // what is longer would overflow
constexpr auto kEarliestFirst = std::greater<Places::TimePoint>();  // for std::*_heap, which keep the largest in front

}  // namespace

Clock::Duration duration(double seconds) {
  return std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(std::min(seconds, kSecondsMax)));
}

void Places::add(TimePoint free_at, std::size_t places) {
  for (std::size_t i = 0; i < places; ++i) {
    free_at_.push_back(free_at);
    std::push_heap(free_at_.begin(), free_at_.end(), kEarliestFirst);
  }
}

Places::TimePoint Places::finish(double seconds, std::size_t places) const {
  return places == 1 ? first_free() + duration(seconds) : Places(*this).take(seconds, places);
}

Places::TimePoint Places::take(double seconds, std::size_t places) {
  places = std::clamp<std::size_t>(places, 1, free_at_.size());
  auto first_taken = free_at_.end();
  const TimePoint first = first_free();
  Clock::Duration sum = duration(seconds * static_cast<double>(places));
  TimePoint finish{};
  for (std::size_t taken = 1; taken <= places; ++taken) {
    std::pop_heap(free_at_.begin(), first_taken, kEarliestFirst);
    --first_taken;
    sum += *first_taken - first;
    finish = first + sum / static_cast<Clock::Duration::rep>(taken);
    if (first_taken == free_at_.begin() || finish <= free_at_.front()) break;
  }
  while (first_taken != free_at_.end()) {
    *first_taken++ = finish;
    std::push_heap(free_at_.begin(), first_taken, kEarliestFirst);
  }
  return finish;
}

void Places::take_first(TimePoint until) {
  std::pop_heap(free_at_.begin(), free_at_.end(), kEarliestFirst);
  free_at_.back() = until;
  std::push_heap(free_at_.begin(), free_at_.end(), kEarliestFirst);
}

}  // namespace sluice::feeder
