// The arena: one memfd, mapped by the feeder and by its clients (and by Python children), cut into slots.
//
// A batch is written into a slot once and read there by the trainer. The file has no name, is sparse, and cannot
// shrink under a client that has mapped it (F_SEAL_SHRINK). Page faults and zeroing cost more than the copy itself. So
// a slot comes from memory that was used before if it fits there, best from an equal slot that was freed last. Only
// else does it come from untouched memory.
//
// Lending. A slot whose tensors the trainer may keep for ever is *lent*; every other slot comes back in bounded time.
// try_lend() refuses to lend if the largest run of memory free of lent slots would become too small for the next
// batch. The feeder then asks the client to copy that batch out at once. So a trainer that keeps every batch it ever
// saw still makes progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>

#include "src/base/result.h"
#include "src/transport/unique_fd.h"

namespace sluice::transport {

inline constexpr std::size_t kSlotAlignment = 4096;
inline constexpr std::size_t kTensorAlignment = 64;

class Arena;

// Owns a slot until destroyed. Destroying one may run the callbacks of allocations that waited for memory, on the
// destroying thread: hold no lock that they take. Thread safety: none; movable between threads.
class ArenaSlot {
 public:
  ArenaSlot() = default;
  ArenaSlot(ArenaSlot&& other) noexcept;
  ArenaSlot& operator=(ArenaSlot&& other) noexcept;
  ~ArenaSlot();

  bool valid() const { return arena_ != nullptr; }
  std::uint64_t id() const { return id_; }        // never reused within an arena
  std::size_t offset() const { return offset_; }  // a multiple of kSlotAlignment
  std::size_t bytes() const { return bytes_; }    // as asked for, rounded up to kSlotAlignment
  std::byte* data() const;

 private:
  friend class Arena;
  ArenaSlot(std::shared_ptr<Arena> arena, std::uint64_t id, std::size_t offset, std::size_t bytes)
      : arena_(std::move(arena)), id_(id), offset_(offset), bytes_(bytes) {}

  std::shared_ptr<Arena> arena_;
  std::uint64_t id_ = 0;
  std::size_t offset_ = 0;
  std::size_t bytes_ = 0;
};

// Thread safety: all methods may be called from any thread.
// Invariants: slots do not overlap; free blocks are disjoint, coalesced, and with the slots cover the arena exactly.
class Arena : public std::enable_shared_from_this<Arena> {
 public:
  using Granted = std::function<void(Result<ArenaSlot>)>;
  using Ticket = std::uint64_t;

  static Result<std::shared_ptr<Arena>> create(std::size_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int fd() const { return fd_.get(); }
  std::size_t bytes() const { return bytes_; }
  std::byte* data() const { return data_; }
  std::size_t free_bytes() const;

  // A slot now, without passing those who wait; an invalid one if there is none.
  ArenaSlot try_allocate(std::size_t bytes);

  // First come, first served: `granted` runs exactly once, either before this returns or on the thread that frees
  // enough memory. It gets ResourceExhausted if `bytes` exceeds the arena, or the error given to cancel(). At most
  // kWaitersMax wait at a time.
  Ticket allocate_async(std::size_t bytes, Granted granted);

  // Ends a wait with `reason`; nothing happens if it was granted already.
  void cancel(Ticket ticket, Error reason);

  // Blocks. Errors: Cancelled; ResourceExhausted if the slot cannot fit, or sweep_waiters() gave up on it.
  Result<ArenaSlot> allocate(std::size_t bytes, const std::stop_token& stop);

  // Marks the slot as lent. False, and no change, if afterwards no run of `keep_bytes` without lent slots were left.
  bool try_lend(const ArenaSlot& slot, std::size_t keep_bytes);

  // True if `bytes` can be allocated once every slot that is not lent has come back.
  bool fits_beside_lent(std::size_t bytes) const;

  // To be called about once a second where slots are lent. A waiter is refused (ResourceExhausted) if for kSweepsMax
  // sweeps it could not have been served even with every slot back that is not lent. Only the trainer could help them.
  void sweep_waiters();

  static constexpr std::size_t kWaitersMax = 4096;
  static constexpr int kSweepsMax = 30;

 private:
  friend class ArenaSlot;
  struct FreeBlock {
    std::size_t bytes = 0;
    std::uint64_t freed_tick = 0;  // 0: never used
  };
  struct UsedBlock {
    std::size_t bytes = 0;
    bool lent = false;
  };
  struct Waiter {
    Ticket ticket = 0;
    std::size_t bytes = 0;
    Granted granted;
    int hopeless_sweeps = 0;
  };

  Arena(UniqueFd fd, std::byte* data, std::size_t bytes);
  ArenaSlot take_locked(std::size_t bytes);
  // One call serves at a time, in a loop: callbacks that give their slot back at once must not nest as deep as many
  // wait.
  void serve_waiters();
  void release(std::size_t offset);
  std::size_t largest_run_without_lent_locked() const;

  const UniqueFd fd_;
  std::byte* const data_;
  const std::size_t bytes_;
  mutable std::mutex mutex_;
  std::map<std::size_t, FreeBlock> free_;  // by offset
  std::map<std::size_t, UsedBlock> used_;  // by offset
  std::deque<Waiter> waiters_;
  bool serving_ = false;
  std::uint64_t tick_ = 0;
  std::uint64_t next_slot_ = 1;
  Ticket next_ticket_ = 1;
};

}  // namespace sluice::transport
