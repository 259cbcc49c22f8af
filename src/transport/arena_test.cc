#include "src/transport/arena.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <rapidcheck.h>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::transport {
namespace {

constexpr std::size_t kPage = kSlotAlignment;

std::shared_ptr<Arena> make_arena(std::size_t pages) {
  auto arena = Arena::create(pages * kPage);
  REQUIRE(arena.ok());
  return *arena;
}

TEST_CASE("a slot is aligned, rounded up and comes back when destroyed") {
  auto arena = make_arena(8);
  {
    const ArenaSlot slot = arena->try_allocate(5000);
    REQUIRE(slot.valid());
    CHECK(slot.offset() % kPage == 0);
    CHECK(slot.bytes() == 2 * kPage);
    CHECK(arena->free_bytes() == 6 * kPage);
  }
  CHECK(arena->free_bytes() == 8 * kPage);
}

TEST_CASE("the file cannot shrink under its readers") {
  auto arena = make_arena(4);
  CHECK(::ftruncate(arena->fd(), kPage) != 0);
}

TEST_CASE("memory that was used before is preferred, the last freed first") {
  auto arena = make_arena(64);
  ArenaSlot a = arena->try_allocate(2 * kPage);
  ArenaSlot b = arena->try_allocate(2 * kPage);
  ArenaSlot c = arena->try_allocate(2 * kPage);
  ArenaSlot d = arena->try_allocate(2 * kPage);
  const std::size_t offset_a = a.offset(), offset_c = c.offset();
  c = {};
  a = {};
  CHECK(arena->try_allocate(2 * kPage).offset() == offset_a);
  ArenaSlot again = arena->try_allocate(2 * kPage);
  CHECK(again.offset() == offset_a);
  CHECK(arena->try_allocate(2 * kPage).offset() == offset_c);
}

TEST_CASE("a steady use of slots touches no new pages") {
  auto arena = make_arena(1024);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaSlot> slots;
    for (int i = 0; i < 4; ++i) {
      slots.push_back(arena->try_allocate((1 + (round + i) % 3) * kPage));
      REQUIRE(slots.back().valid());
      std::memset(slots.back().data(), round, slots.back().bytes());
    }
  }
  struct stat status {};
  REQUIRE(::fstat(arena->fd(), &status) == 0);
  CHECK(static_cast<std::size_t>(status.st_blocks) * 512 <= 16 * kPage);
}

TEST_CASE("who asks for more than the arena is told so at once") {
  auto arena = make_arena(4);
  const auto slot = arena->allocate(5 * kPage, {});
  REQUIRE(!slot.ok());
  CHECK(slot.error().code() == ErrorCode::kResourceExhausted);
  CHECK_THAT(slot.error().message(), Catch::Contains("--arena-bytes"));
}

TEST_CASE("waiters are served first come, first served, and none passes a large one") {
  auto arena = make_arena(4);
  ArenaSlot first = arena->try_allocate(2 * kPage);
  ArenaSlot second = arena->try_allocate(1 * kPage);
  std::vector<int> order;
  std::vector<ArenaSlot> granted;
  auto note = [&](int who) {
    return [&, who](Result<ArenaSlot> slot) {
      order.push_back(who);
      granted.push_back(std::move(slot).value());
    };
  };
  arena->allocate_async(3 * kPage, note(1));
  arena->allocate_async(1 * kPage, note(2));
  CHECK(order.empty());
  CHECK(!arena->try_allocate(kPage).valid());
  second = {};
  CHECK(order.empty());
  first = {};
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("a wait ends when it is stopped") {
  auto arena = make_arena(2);
  const ArenaSlot all = arena->try_allocate(2 * kPage);
  std::stop_source stop;
  std::optional<Result<ArenaSlot>> slot;
  std::jthread waiter([&] { slot.emplace(arena->allocate(kPage, stop.get_token())); });
  stop.request_stop();
  waiter.join();
  REQUIRE(slot.has_value());
  CHECK(slot->error().code() == ErrorCode::kCancelled);
}

TEST_CASE("cancelling the waiter in front lets those behind it through") {
  auto arena = make_arena(2);
  const ArenaSlot half = arena->try_allocate(kPage);
  std::optional<Error> refused;
  bool served = false;
  const auto ticket = arena->allocate_async(2 * kPage, [&](Result<ArenaSlot> slot) { refused = slot.error(); });
  arena->allocate_async(kPage, [&](Result<ArenaSlot> slot) { served = slot.ok(); });
  CHECK(!served);
  arena->cancel(ticket, Error(ErrorCode::kCancelled, "no longer needed"));
  CHECK(served);
  REQUIRE(refused.has_value());
  CHECK(refused->code() == ErrorCode::kCancelled);
}

TEST_CASE("lending stops while one more batch still fits beside what is lent") {
  auto arena = make_arena(6);
  ArenaSlot a = arena->try_allocate(2 * kPage);
  ArenaSlot b = arena->try_allocate(2 * kPage);
  ArenaSlot c = arena->try_allocate(2 * kPage);
  CHECK(arena->try_lend(a, 2 * kPage));
  CHECK(arena->try_lend(b, 2 * kPage));
  CHECK(!arena->try_lend(c, 2 * kPage));
  CHECK(arena->fits_beside_lent(2 * kPage));
  CHECK(!arena->fits_beside_lent(3 * kPage));
  a = {};
  CHECK(arena->try_lend(c, 2 * kPage));
}

TEST_CASE("a wait that only the trainer could end is given up after a while; others go on") {
  auto arena = make_arena(4);
  std::vector<ArenaSlot> kept;
  for (int i = 0; i < 4; ++i) kept.push_back(arena->try_allocate(kPage));
  REQUIRE(arena->try_lend(kept[1], kPage));
  std::optional<Error> refused;
  bool served = false;
  arena->allocate_async(3 * kPage, [&](Result<ArenaSlot> slot) { refused = slot.error(); });
  arena->allocate_async(2 * kPage, [&](Result<ArenaSlot> slot) { served = slot.ok(); });
  for (int sweep = 0; sweep < Arena::kSweepsMax - 1; ++sweep) arena->sweep_waiters();
  CHECK(!refused.has_value());
  arena->sweep_waiters();
  REQUIRE(refused.has_value());
  CHECK(refused->code() == ErrorCode::kResourceExhausted);
  CHECK(!served);
  kept.erase(kept.begin() + 2, kept.end());
  CHECK(served);
}

TEST_CASE("slots never overlap and free memory adds up, whatever the order", "[property]") {
  const bool held = rc::check("random allocate, free and lend", [] {
    const std::size_t pages = *rc::gen::inRange(1, 40);
    auto arena = *Arena::create(pages * kPage);
    std::vector<ArenaSlot> slots;
    const int steps = *rc::gen::inRange(1, 120);
    for (int step = 0; step < steps; ++step) {
      if (slots.empty() || *rc::gen::inRange(0, 3) > 0) {
        const std::size_t bytes = *rc::gen::inRange<std::size_t>(1, 8 * kPage);
        ArenaSlot slot = arena->try_allocate(bytes);
        if (slot.valid()) {
          RC_ASSERT(slot.bytes() >= bytes);
          slots.push_back(std::move(slot));
          arena->try_lend(slots.back(), kPage);
        }
      } else {
        slots.erase(slots.begin() + *rc::gen::inRange<int>(0, static_cast<int>(slots.size())));
      }
      std::vector<bool> used(pages, false);
      std::size_t used_bytes = 0;
      for (const ArenaSlot& slot : slots) {
        RC_ASSERT(slot.offset() + slot.bytes() <= arena->bytes());
        used_bytes += slot.bytes();
        for (std::size_t page = slot.offset() / kPage; page < (slot.offset() + slot.bytes()) / kPage; ++page) {
          RC_ASSERT(!used[page]);
          used[page] = true;
        }
      }
      RC_ASSERT(arena->free_bytes() + used_bytes == arena->bytes());
    }
    slots.clear();
    RC_ASSERT(arena->try_allocate(arena->bytes()).valid());
  });
  CHECK(held);
}

TEST_CASE("threads that fight for a small arena all get their turns", "[threads]") {
  auto arena = make_arena(4);
  std::atomic<int> served = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&, thread] {
        for (int turn = 0; turn < 200; ++turn) {
          auto slot = arena->allocate((1 + (thread + turn) % 3) * kPage, {});
          if (!slot.ok()) return;
          std::memset(slot->data(), thread, slot->bytes());
          served += slot->data()[slot->bytes() - 1] == static_cast<std::byte>(thread);
        }
      });
    }
  }
  CHECK(served == 800);
  CHECK(arena->free_bytes() == arena->bytes());
}

}  // namespace
}  // namespace sluice::transport
