// The arena against a model: exhaustion, the order in which waiters are served, cancellation and lending, at random.
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/transport/arena.h"

namespace sluice::transport {
namespace {

constexpr std::size_t kSlotBytes = kSlotAlignment;

std::size_t pick(std::size_t below) { return *rc::gen::inRange<std::size_t>(0, below); }

// Waiters and slots as the arena's contract describes them.
class Model {
 public:
  explicit Model(std::size_t pages) : arena_(*Arena::create(pages * kSlotBytes)) {}
  ~Model() {
    for (const auto& [who, waiter] : waiting_) arena_->cancel(waiter.ticket, Error(ErrorCode::kCancelled, "the end"));
  }

  void step() {
    switch (pick(6)) {
      case 0:
      case 1:
      case 2: ask(); break;
      case 3: free_one(); break;
      case 4: cancel_one(); break;
      default: lend_one(); break;
    }
    check();
  }

  // Every waiter is served when all slots come back.
  void free_all() {
    while (!slots_.empty()) {
      free_one();
      check();
    }
    RC_ASSERT(waiting_.empty());
    RC_ASSERT(arena_->free_bytes() == arena_->bytes());
  }

 private:
  struct Waiter {
    Arena::Ticket ticket = 0;
    std::size_t bytes = 0;
  };

  void ask() {
    const std::size_t who = next_++;
    const std::size_t bytes = 1 + pick(arena_->bytes() + arena_->bytes() / 8);
    // Served within the call if at all: the note below must find it waiting.
    waiting_[who] = {0, (bytes + kSlotBytes - 1) / kSlotBytes * kSlotBytes};
    const auto ticket =
        arena_->allocate_async(bytes, [this, who](Result<ArenaSlot> slot) { told(who, std::move(slot)); });
    if (const auto waiter = waiting_.find(who); waiter != waiting_.end()) waiter->second.ticket = ticket;
  }

  void told(std::size_t who, Result<ArenaSlot> slot) {
    RC_ASSERT(waiting_.contains(who));  // exactly once
    const Waiter waiter = waiting_[who];
    if (slot.ok()) {
      RC_ASSERT(waiting_.begin()->first == who);  // first come, first served
      RC_ASSERT(slot->bytes() == waiter.bytes);
      slots_.push_back(std::move(slot).value());
    } else if (slot.error().code() == ErrorCode::kResourceExhausted) {
      RC_ASSERT(waiter.bytes > arena_->bytes());
    } else {
      RC_ASSERT(cancelled_ == who);
    }
    waiting_.erase(who);
  }

  void free_one() {
    if (slots_.empty()) return;
    const std::size_t chosen = pick(slots_.size());
    ArenaSlot slot = std::move(slots_[chosen]);
    slots_.erase(slots_.begin() + static_cast<long>(chosen));
  }

  void cancel_one() {
    if (waiting_.empty()) return;
    const auto waiter = std::next(waiting_.begin(), static_cast<long>(pick(waiting_.size())));
    cancelled_ = waiter->first;
    arena_->cancel(waiter->second.ticket, Error(ErrorCode::kCancelled, "no longer needed"));
    RC_ASSERT(!waiting_.contains(*cancelled_));
  }

  void lend_one() {
    if (slots_.empty()) return;
    const std::size_t keep = 1 + pick(arena_->bytes());
    if (arena_->try_lend(slots_[pick(slots_.size())], keep)) RC_ASSERT(arena_->fits_beside_lent(keep));
  }

  std::size_t largest_free_run() const {
    std::vector<std::pair<std::size_t, std::size_t>> used;
    for (const ArenaSlot& slot : slots_) used.emplace_back(slot.offset(), slot.bytes());
    std::sort(used.begin(), used.end());
    std::size_t largest = 0, at = 0;
    for (const auto& [offset, bytes] : used) {
      RC_ASSERT(offset >= at);  // no overlap
      largest = std::max(largest, offset - at);
      at = offset + bytes;
    }
    RC_ASSERT(at <= arena_->bytes());
    return std::max(largest, arena_->bytes() - at);
  }

  void check() const {
    const std::size_t largest = largest_free_run();
    // No waiter waits while there is room for the first in the line, and none passes it.
    if (!waiting_.empty()) RC_ASSERT(waiting_.begin()->second.bytes > largest);
    if (!waiting_.empty()) RC_ASSERT(!arena_->try_allocate(1).valid());
    std::size_t used = 0;
    for (const ArenaSlot& slot : slots_) used += slot.bytes();
    RC_ASSERT(arena_->free_bytes() + used == arena_->bytes());
  }

  std::shared_ptr<Arena> arena_;
  std::vector<ArenaSlot> slots_;
  std::map<std::size_t, Waiter> waiting_;  // by order of asking
  std::optional<std::size_t> cancelled_;
  std::size_t next_ = 0;
};

TEST_CASE("an exhausted arena serves those who wait in order, as soon as the first one fits", "[property]") {
  const bool held = rc::check("ask, free, cancel, lend", [] {
    Model model(1 + pick(24));
    const std::size_t steps = 1 + pick(100);
    for (std::size_t i = 0; i < steps; ++i) model.step();
    model.free_all();
  });
  CHECK(held);
}

TEST_CASE("one slot that comes back may serve many, and each of those more when it goes back at once") {
  auto arena = *Arena::create(8 * kSlotBytes);
  ArenaSlot all = arena->try_allocate(8 * kSlotBytes);
  int served = 0;
  // The callback drops its slot: the next waiter is served on the way out of it.
  for (int i = 0; i < 200; ++i)
    arena->allocate_async((1 + i % 8) * kSlotBytes, [&](Result<ArenaSlot> slot) { served += slot.ok(); });
  CHECK(served == 0);
  all = {};
  CHECK(served == 200);
  CHECK(arena->free_bytes() == arena->bytes());
}

TEST_CASE("no more may wait than the bound says") {
  auto arena = *Arena::create(kSlotBytes);
  ArenaSlot all = arena->try_allocate(kSlotBytes);
  std::size_t served = 0, refused = 0;
  for (std::size_t i = 0; i < Arena::kWaitersMax + 3; ++i) {
    arena->allocate_async(1, [&](Result<ArenaSlot> slot) { slot.ok() ? ++served : ++refused; });
  }
  CHECK(refused == 3);
  all = {};
  CHECK(served == Arena::kWaitersMax);
}

TEST_CASE("a slot that is assigned over is given back, and moved from it owns nothing") {
  auto arena = *Arena::create(4 * kSlotBytes);
  ArenaSlot first = arena->try_allocate(kSlotBytes), second = arena->try_allocate(2 * kSlotBytes);
  const std::uint64_t id = second.id();
  first = std::move(second);
  CHECK(first.id() == id);
  CHECK(arena->free_bytes() == 2 * kSlotBytes);
  CHECK(!second.valid());  // NOLINT(bugprone-use-after-move): what is left behind is the point
  ArenaSlot& itself = first;
  first = std::move(itself);
  CHECK(first.valid());
  CHECK(arena->free_bytes() == 2 * kSlotBytes);
}

TEST_CASE("slots keep their arena alive") {
  ArenaSlot slot;
  {
    auto arena = *Arena::create(kSlotBytes);
    slot = arena->try_allocate(kSlotBytes);
  }
  slot.data()[0] = std::byte{1};
  CHECK(slot.data()[0] == std::byte{1});
}

TEST_CASE("the ids of slots never come again") {
  auto arena = *Arena::create(2 * kSlotBytes);
  std::uint64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    const ArenaSlot slot = arena->try_allocate(kSlotBytes);
    CHECK(slot.id() > last);
    last = slot.id();
  }
}

TEST_CASE("stopping and freeing at the same time: each wait ends once, with a slot or without", "[threads]") {
  auto arena = *Arena::create(2 * kSlotBytes);
  std::atomic<int> granted = 0, stopped = 0;
  for (int round = 0; round < 100; ++round) {
    ArenaSlot all = arena->try_allocate(2 * kSlotBytes);
    REQUIRE(all.valid());
    std::stop_source stop;
    std::jthread waiter([&] { arena->allocate(kSlotBytes, stop.get_token()).ok() ? ++granted : ++stopped; });
    std::jthread stopper([&] { stop.request_stop(); });
    all = {};
    stopper.join();
    waiter.join();
    REQUIRE(arena->free_bytes() == arena->bytes());
  }
  CHECK(granted + stopped == 100);
}

}  // namespace
}  // namespace sluice::transport
