#include "src/cache/order/shared_records.h"

#include <map>
#include <numeric>
#include <random>

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

using Places = std::vector<SharedRecords::Place>;
using Order = std::vector<std::uint32_t>;
constexpr SharedRecords::Job kFirstReader = 1;
constexpr SharedRecords::Job kSecondReader = 2;

// Places are hashes: far apart, and in no order.
SharedRecords::Place place_of(std::uint64_t data_set, std::uint64_t index) {
  return (data_set * 1000000 + index + 1) * 0x9E3779B97F4A7C15ULL;
}

Places places_of(std::uint64_t data_set, std::uint32_t count) {
  Places places;
  for (std::uint32_t i = 0; i < count; ++i) places.push_back(place_of(data_set, i));
  return places;
}

// As a tier does. Returns whether it was a hit.
bool ask(SharedRecords& records, SharedRecords::Job job, SharedRecords::Place place, std::uint32_t bytes = 1) {
  records.asked(job, place);
  if (records.holds(place)) return true;
  static_cast<void>(records.offer(place, bytes));
  return false;
}

Order shuffled(std::uint32_t count, std::mt19937& random) {
  Order order(count);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

TEST_CASE(
    "two jobs whose orders are declared fetch less than the share that does not fit, and less than unknown ones") {
  constexpr std::uint32_t kRecords = 400;
  const auto fetches_of = [&](bool declares) {
    SharedRecords records({.capacity_bytes = 80});
    const Places places = places_of(1, kRecords);
    std::mt19937 random(4);
    if (declares) REQUIRE(records.declare(kFirstReader, places).ok());
    if (declares) REQUIRE(records.declare(kSecondReader, places).ok());
    Order orders[2];
    int fetches = 0;
    for (std::uint32_t step = 0; step < 12 * kRecords; ++step) {
      for (const SharedRecords::Job job : {kFirstReader, kSecondReader}) {
        const std::uint32_t place = step + (job == kFirstReader ? 0 : kRecords / 2);
        Order& order = orders[job - 1];
        if (place % kRecords == 0 || order.empty()) {
          order = shuffled(kRecords, random);
          if (declares) REQUIRE(records.begin_epoch(job, order, place % kRecords).ok());
        }
        const bool is_hit = ask(records, job, places[order[place % kRecords]]);
        if (step >= 2 * kRecords && !is_hit) ++fetches;
      }
    }
    return fetches / (20.0 * kRecords);
  };
  CHECK(fetches_of(false) == Approx(.65).margin(.02));
  CHECK(fetches_of(true) == Approx(.59).margin(.02));
}

TEST_CASE("what is offered is kept where there is room, and known by its place") {
  SharedRecords records({.capacity_bytes = 10});
  records.asked(kFirstReader, 77);
  CHECK_FALSE(records.holds(77));
  CHECK(records.offer(77, 6).is_kept);
  CHECK(records.holds(77));
  CHECK(records.bytes() == 6);
  records.asked(kFirstReader, 78);
  CHECK_FALSE(records.offer(78, 6).is_kept);  // as far away as the first
  CHECK(records.offer(77, 6).is_kept);
  records.lost(77);
  records.lost(79);
  CHECK(records.bytes() == 0);
  CHECK(records.offer(78, 6).is_kept);
}

TEST_CASE(
    "what an earlier job or process has left serves the next job of its data set, and goes where no job wants it") {
  constexpr std::uint32_t kRecords = 300;
  const bool is_of_data_set = GENERATE(true, false);
  const bool is_of_process = GENERATE(true, false);
  std::mt19937 random(7);
  SharedRecords records({.capacity_bytes = 100});
  for (std::uint64_t index = 0; index < 100; ++index) {
    const auto place = place_of(is_of_data_set ? 1 : 2, index);
    if (is_of_process)
      CHECK(records.offer(place, 1).is_kept);
    else
      ask(records, kFirstReader, place);
  }
  records.leave(kFirstReader);
  for (int epoch = 0; epoch < 4; ++epoch) {
    int hits = 0;
    for (const std::uint32_t index : shuffled(kRecords, random))
      hits += ask(records, kSecondReader, place_of(1, index)) ? 1 : 0;
    INFO("epoch " << epoch << ", of its data set " << is_of_data_set);
    if (is_of_data_set) CHECK(hits == 100);
    if (!is_of_data_set && epoch == 0) CHECK(hits == 0);
    if (!is_of_data_set && epoch > 1) CHECK(hits == 100);
  }
}

TEST_CASE("what no job uses any more goes first") {
  SharedRecords records({.capacity_bytes = 3});
  for (const std::uint64_t index : {0, 1, 2}) ask(records, kFirstReader, place_of(1, index));
  records.leave(kFirstReader);
  REQUIRE(records.declare(kSecondReader, places_of(2, 9)).ok());
  records.asked(kSecondReader, place_of(2, 0));
  const auto admission = records.offer(place_of(2, 0), 1);
  CHECK(admission.is_kept);
  CHECK(admission.evicted.size() == 1);
  CHECK_FALSE(records.holds(admission.evicted.at(0)));
}

TEST_CASE("numbers of records that no job uses any more come back, those in use stay") {
  SharedRecords records({.capacity_bytes = 5, .places = 40});
  for (std::uint64_t index = 0; index < 40; ++index) ask(records, kFirstReader, place_of(1, index));
  // All numbers are in use: the question passes by.
  records.asked(kSecondReader, place_of(2, 0));
  CHECK_FALSE(records.offer(place_of(2, 0), 1).is_kept);
  records.leave(kFirstReader);
  for (std::uint64_t round = 0; round < 6; ++round)
    for (std::uint64_t index = 0; index < 30; ++index) ask(records, kSecondReader, place_of(2, index));
  int held = 0;
  for (std::uint64_t index = 0; index < 30; ++index) held += records.holds(place_of(2, index)) ? 1 : 0;
  CHECK(held == 5);
}

TEST_CASE("what a job declares is not given to others, and what it announces must be of that") {
  SharedRecords records({.capacity_bytes = 5, .places = 20, .order_bytes = 1000});
  REQUIRE(records.declare(kFirstReader, places_of(1, 10)).ok());
  CHECK(records.begin_epoch(kFirstReader, Order{0, 9}).ok());
  CHECK(records.announce_next_epoch(kFirstReader, Order{9, 0}).ok());
  CHECK(records.begin_epoch(kFirstReader, Order{10}).error().code() == ErrorCode::kInvalidArgument);
  CHECK(records.begin_epoch(kSecondReader, Order{0}).error().code() == ErrorCode::kNotFound);
  for (std::uint64_t index = 0; index < 200; ++index) ask(records, kSecondReader, place_of(2, index));
  CHECK(records.declare(kFirstReader, places_of(1, 10)).ok());
  CHECK(records.begin_epoch(kFirstReader, Order{3, 4}).ok());
  CHECK(ask(records, kFirstReader, place_of(1, 3)) == false);
}

TEST_CASE("bounds on places, jobs and bytes refuse, and the cache goes on") {
  SharedRecords records({.capacity_bytes = 5, .places = 20, .jobs = 2, .order_bytes = 1000});
  CHECK(records.declare(kFirstReader, places_of(1, 21)).error().code() == ErrorCode::kResourceExhausted);
  CHECK(records.declare(kFirstReader, places_of(1, 20)).ok());
  CHECK(records.declare(kSecondReader, places_of(2, 1)).error().code() == ErrorCode::kResourceExhausted);
  records.leave(kFirstReader);
  CHECK(records.declare(kSecondReader, places_of(2, 20)).ok());
  ask(records, 3, place_of(2, 3));
  ask(records, 4, place_of(2, 4));  // one too many
  CHECK(records.holds(place_of(2, 4)));
}

TEST_CASE("a job that has gone without a word makes place for another one, and so does what it declared") {
  SharedRecords records({.capacity_bytes = 5, .places = 20, .jobs = 1, .order_bytes = 159});
  REQUIRE(records.declare(kFirstReader, places_of(1, 20)).ok());
  CHECK(records.declare(kSecondReader, places_of(1, 20)).error().code() == ErrorCode::kResourceExhausted);
  for (std::uint64_t i = 0; i < 30000; ++i) ask(records, kSecondReader, place_of(1, i % 10));
  CHECK(records.begin_epoch(kFirstReader, Order{1}).error().code() == ErrorCode::kNotFound);
  CHECK(records.declare(kSecondReader, places_of(1, 20)).ok());
}

TEST_CASE("whatever jobs ask and claim, the cache holds what it has said, within its bounds") {
  std::mt19937 random(9);
  const SharedRecords::Limits limits{.capacity_bytes = 300, .places = 50, .jobs = 3, .order_bytes = 1500};
  SharedRecords records(limits);
  std::map<SharedRecords::Place, std::uint32_t> held;
  const auto bytes_held = [&] {
    std::uint64_t sum = 0;
    for (const auto& [place, bytes] : held) sum += bytes;
    return sum;
  };
  for (int step = 0; step < 20000; ++step) {
    const SharedRecords::Job job = random() % 5;
    const SharedRecords::Place place = place_of(random() % 3, random() % 40);
    Order order(1 + random() % 30);
    for (std::uint32_t& index : order) index = random() % (random() % 50 == 0 ? 1000 : 20);
    switch (random() % 40) {
      case 0: static_cast<void>(records.declare(job, places_of(random() % 3, random() % 60))); break;
      case 1: static_cast<void>(records.begin_epoch(job, order, random() % 100)); break;
      case 2: static_cast<void>(records.announce_next_epoch(job, order)); break;
      case 3: records.leave(job); break;
      case 4:
        records.lost(place);
        held.erase(place);
        break;
      default: records.asked(job, place);
    }
    CHECK(records.holds(place) == held.contains(place));
    if (records.holds(place) || random() % 2 == 0) continue;
    const std::uint32_t bytes = random() % 400;
    const auto admission = records.offer(place, bytes);
    for (const SharedRecords::Place evicted : admission.evicted) CHECK(held.erase(evicted) == 1);
    if (admission.is_kept) held[place] = bytes;
    CHECK(records.bytes() == bytes_held());
    CHECK(records.bytes() <= limits.capacity_bytes);
  }
}

TEST_CASE(
    "what is held for each job: of its own part, whichever job has brought it, and of many records about as much") {
  for (const std::uint32_t half : {100U, 30'000U}) {
    CAPTURE(half);
    SharedRecords records({.capacity_bytes = 1ULL << 40, .places = 1 << 17});
    CHECK(records.bytes_by_job().empty());
    const Places places = places_of(1, 3 * half);
    for (std::uint32_t i = 0; i < 2 * half; ++i) ask(records, kFirstReader, places[i], 10);
    REQUIRE(records.declare(kSecondReader, std::span(places).subspan(half)).ok());  // a half of it is not here
    const auto bytes = records.bytes_by_job();
    CHECK(bytes.size() == 2);
    CHECK(bytes.at(kFirstReader) == Approx(20.0 * half).epsilon(0.05));
    CHECK(bytes.at(kSecondReader) == Approx(10.0 * half).epsilon(0.05));
    records.leave(kFirstReader);
    CHECK(records.bytes_by_job().size() == 1);
  }
}

}  // namespace
}  // namespace sluice::cache
