#include "src/transport/arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::transport {
namespace {

std::size_t round_up(std::size_t bytes) {
  return std::max(kSlotAlignment, (bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment);
}

Error exhausted(std::string message) { return {ErrorCode::kResourceExhausted, std::move(message)}; }

}  // namespace

ArenaSlot::ArenaSlot(ArenaSlot&& other) noexcept
    : arena_(std::move(other.arena_)), id_(other.id_), offset_(other.offset_), bytes_(other.bytes_) {}

ArenaSlot& ArenaSlot::operator=(ArenaSlot&& other) noexcept {
  if (this == &other) return *this;
  ArenaSlot old(std::move(*this));  // released at the end, when this object is whole again
  arena_ = std::move(other.arena_);
  id_ = other.id_;
  offset_ = other.offset_;
  bytes_ = other.bytes_;
  return *this;
}

ArenaSlot::~ArenaSlot() {
  if (arena_ != nullptr) arena_->release(offset_);
}

std::byte* ArenaSlot::data() const { return arena_->data() + offset_; }

Result<std::shared_ptr<Arena>> Arena::create(std::size_t bytes) {
  bytes = round_up(bytes);
  UniqueFd fd(::memfd_create("sluice-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return errno_error("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return errno_error("ftruncate of the arena");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) return errno_error("sealing the arena");
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (data == MAP_FAILED) return errno_error("mmap of the arena");
  return std::shared_ptr<Arena>(new Arena(std::move(fd), static_cast<std::byte*>(data), bytes));
}

Arena::Arena(UniqueFd fd, std::byte* data, std::size_t bytes) : fd_(std::move(fd)), data_(data), bytes_(bytes) {
  free_.emplace(0, FreeBlock{bytes, 0});
}

Arena::~Arena() { ::munmap(data_, bytes_); }

std::size_t Arena::free_bytes() const {
  std::lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const auto& [offset, block] : free_) total += block.bytes;
  return total;
}

ArenaSlot Arena::take_locked(std::size_t bytes) {
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (block->second.bytes < bytes) continue;
    const bool equal = block->second.bytes == bytes;
    const bool best_equal = best != free_.end() && best->second.bytes == bytes;
    if (best == free_.end() || (equal && (!best_equal || block->second.freed_tick > best->second.freed_tick))) {
      best = block;
    }
  }
  if (best == free_.end()) return {};
  const std::size_t offset = best->first;
  const FreeBlock rest{best->second.bytes - bytes, best->second.freed_tick};
  free_.erase(best);
  if (rest.bytes > 0) free_.emplace(offset + bytes, rest);
  used_.emplace(offset, UsedBlock{bytes, false});
  return {shared_from_this(), next_slot_++, offset, bytes};
}

ArenaSlot Arena::try_allocate(std::size_t bytes) {
  if (bytes > bytes_) return {};
  std::lock_guard lock(mutex_);
  if (!waiters_.empty()) return {};
  return take_locked(round_up(bytes));
}

Arena::Ticket Arena::allocate_async(std::size_t bytes, Granted granted) {
  if (bytes > bytes_) {
    granted(exhausted("a batch of " + std::to_string(bytes) + " bytes does not fit in the arena of " +
                      std::to_string(bytes_) + " bytes: raise --arena-bytes or lower the batch size"));
    return 0;
  }
  std::unique_lock lock(mutex_);
  if (waiters_.size() >= kWaitersMax) {
    lock.unlock();
    granted(exhausted("too many batches wait for the arena"));
    return 0;
  }
  const Ticket ticket = next_ticket_++;
  if (waiters_.empty()) {
    if (ArenaSlot slot = take_locked(round_up(bytes)); slot.valid()) {
      lock.unlock();
      granted(std::move(slot));
      return ticket;
    }
  }
  waiters_.push_back({ticket, round_up(bytes), std::move(granted)});
  return ticket;
}

void Arena::cancel(Ticket ticket, Error reason) {
  Granted granted;
  {
    std::lock_guard lock(mutex_);
    const auto waiter =
        std::find_if(waiters_.begin(), waiters_.end(), [&](const Waiter& w) { return w.ticket == ticket; });
    if (waiter == waiters_.end()) return;
    granted = std::move(waiter->granted);
    waiters_.erase(waiter);
  }
  granted(std::move(reason));
  serve_waiters();  // those behind it may fit
}

Result<ArenaSlot> Arena::allocate(std::size_t bytes, const std::stop_token& stop) {
  struct Wait {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::optional<Result<ArenaSlot>> answer;
  };
  auto wait = std::make_shared<Wait>();
  const Ticket ticket = allocate_async(bytes, [wait](Result<ArenaSlot> slot) {
    std::lock_guard lock(wait->mutex);
    wait->answer.emplace(std::move(slot));
    wait->changed.notify_all();
  });
  std::unique_lock lock(wait->mutex);
  if (!wait->changed.wait(lock, stop, [&] { return wait->answer.has_value(); })) {
    lock.unlock();
    cancel(ticket, Error(ErrorCode::kCancelled, "stopped while waiting for the arena"));
    lock.lock();
    // Whether cancelled or granted in between, the answer is on its way: the callback runs exactly once.
    wait->changed.wait(lock, [&] { return wait->answer.has_value(); });
  }
  return std::move(*wait->answer);
}

void Arena::sweep_waiters() {
  std::vector<Waiter> hopeless;
  {
    std::lock_guard lock(mutex_);
    const std::size_t largest = largest_run_without_lent_locked();
    for (Waiter& waiter : waiters_) waiter.hopeless_sweeps = waiter.bytes > largest ? waiter.hopeless_sweeps + 1 : 0;
    for (const Waiter& waiter : waiters_) {
      if (waiter.hopeless_sweeps >= kSweepsMax) hopeless.push_back(waiter);
    }
  }
  for (const Waiter& waiter : hopeless) {
    cancel(waiter.ticket, exhausted("the trainer keeps so many batches that one of " + std::to_string(waiter.bytes) +
                                    " bytes finds no room: raise --arena-bytes"));
  }
}

void Arena::serve_waiters() {
  std::unique_lock lock(mutex_);
  if (std::exchange(serving_, true)) return;  // the call that serves sees the returned slots
  while (!waiters_.empty()) {
    ArenaSlot slot = take_locked(waiters_.front().bytes);
    if (!slot.valid()) break;
    Granted granted = std::move(waiters_.front().granted);
    waiters_.pop_front();
    lock.unlock();
    granted(std::move(slot));
    granted = nullptr;  // its captures may give a slot back, too
    lock.lock();
  }
  serving_ = false;
}

void Arena::release(std::size_t offset) {
  {
    std::lock_guard lock(mutex_);
    const auto used = used_.find(offset);
    FreeBlock block{used->second.bytes, ++tick_};
    used_.erase(used);
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && next->first == offset + block.bytes) {
      block.bytes += next->second.bytes;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second.bytes == offset) {
        offset = previous->first;
        block.bytes += previous->second.bytes;
        free_.erase(previous);
      }
    }
    free_.emplace(offset, block);
  }
  serve_waiters();
}

std::size_t Arena::largest_run_without_lent_locked() const {
  std::size_t largest = 0;
  std::size_t run_start = 0;
  for (const auto& [offset, block] : used_) {
    if (!block.lent) continue;
    largest = std::max(largest, offset - run_start);
    run_start = offset + block.bytes;
  }
  return std::max(largest, bytes_ - run_start);
}

bool Arena::try_lend(const ArenaSlot& slot, std::size_t keep_bytes) {
  std::lock_guard lock(mutex_);
  const auto used = used_.find(slot.offset());
  if (used == used_.end()) return false;
  used->second.lent = true;
  if (largest_run_without_lent_locked() >= round_up(keep_bytes)) return true;
  used->second.lent = false;
  return false;
}

bool Arena::fits_beside_lent(std::size_t bytes) const {
  std::lock_guard lock(mutex_);
  return largest_run_without_lent_locked() >= round_up(bytes);
}

}  // namespace sluice::transport
