// What the cache of a node holds: a disk's records, and those in memory that were asked for again.
//
// Which records the disk keeps is decided by the questions of all jobs (shared_disk.h). Memory keeps what it has.
// It answers messages (node_cache_messages.h), and trusts none. Until its disk is open, all is missed and nothing kept.
// Thread safety: all methods may be called from any thread; open() once.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "src/cache/counters.h"
#include "src/cache/memory_tier.h"
#include "src/cache/node_cache_messages.h"
#include "src/cache/reclaimer.h"
#include "src/cache/shared_disk.h"

namespace sluice::cache {

struct TierCounters {
  Count hits = 0;
  Count hit_bytes = 0;
};

struct NodeCounters {
  TierCounters memory;
  TierCounters disk;
  Count misses = 0;
  Count refused_messages = 0;  // that were no questions
  Count announced_epochs = 0;  // whose order is known
  Counters store;              // of the disk
};

// An answer as it is sent: the first bytes, and the found value behind them.
struct NodeAnswer {
  std::vector<std::uint8_t> head;
  std::shared_ptr<const Value> value;  // null: there is none
};

class NodeCache {
 public:
  // `tells_room`: the answer to a question says of its record alone whether it has room, as the one that asks may send
  // it to several caches (worker-image/cache/peers.h). REQUIRES: counters outlive it.
  NodeCache(std::uint64_t memory_bytes, NodeCounters& counters, bool tells_room = false);

  // Errors: as SharedDisk::open().
  Result<void> open(const OpenSharedDisk& open_disk, const std::stop_token& stop);
  bool is_open() const { return disk_ != nullptr; }

  // What `message` asks for; nullopt: nothing that can be understood, which is counted.
  std::optional<Question> understand(std::span<const std::uint8_t> message);
  std::optional<Announcement> understand_announcement(std::span<const std::uint8_t> message);

  // At once. nullopt: it is to be asked of find().
  std::optional<NodeAnswer> find_in_memory(const Question& question);
  // What find_in_memory() has not found. May wait for the disk.
  NodeAnswer find(const Key& key, bool tells_job);
  NodeAnswer keep(const Question& question);
  // Of a record that belongs to another cache: nullopt if it is not here, whatever is decided of it there.
  std::optional<NodeAnswer> find_of_other(const Key& key);
  // Of this cache, as each answer tells it.
  Answer state() const;
  // The answer to a question that no cache has answered, which is counted.
  NodeAnswer missed() { return missed(state()); }
  // May take its time. `homes`: of the caches that share their records; null: all are of this one.
  NodeAnswer announce(const Announcement& announcement, const Homes* homes = nullptr);

  // Whether records still have to go, or segments to be written anew, on the thread that does so.
  bool is_reclaiming() const {
    SharedDisk* const disk = disk_;
    return disk != nullptr && disk->wants_reclaiming();
  }

  // As SharedDisk's; none before the disk is open.
  std::vector<SharedDisk::KeptForJob> kept_for_jobs() const {
    const SharedDisk* const disk = disk_;
    return disk == nullptr ? std::vector<SharedDisk::KeptForJob>() : disk->kept_for_jobs();
  }

  std::uint64_t memory_bytes() const { return memory_.bytes(); }
  std::uint64_t memory_records() const { return memory_.records(); }

 private:
  void reclaim_if_wanted(const SharedDisk& disk);
  NodeAnswer missed(const Answer& answer);
  // Null: it is not there.
  std::shared_ptr<const Value> read(SharedDisk& disk, const Key& key);
  NodeAnswer found(const Key& key, std::shared_ptr<const Value> value, TierCounters& tier) const;

  NodeCounters& counters_;
  const bool tells_room_;
  MemoryTier memory_;
  std::unique_ptr<SharedDisk> opened_;  // before disk_ points to it, as the reclaimer
  std::unique_ptr<Reclaimer> reclaimer_;
  std::atomic<SharedDisk*> disk_{nullptr};
};

}  // namespace sluice::cache
