// Records in memory, in front of a disk.
//
// It holds records that were asked for again: what is found on the disk has been asked for when it was stored, and now.
// It keeps what it has, as the disk does and for the same reason: a data set that is read in a new order each epoch has
// most hits so, and where each epoch pushes out what the next one needs, as with LRU, it has least. That is what the
// page cache does, and why this memory is worth having beside it.
// Records that no job wants any more make room. They go in groups: records that came in one after the other. Of a group
// in use some record is asked for all the time, while one record of a large data set may wait for two epochs.
// Bounds: values, keys and what the index takes for them never exceed the bytes given.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/cache/record.h"

namespace sluice::cache {

struct Value {
  std::vector<std::uint8_t> bytes;
  std::uint64_t checksum = 0;  // of the bytes as they were when they came in; their user compares
};

class MemoryTier {
 public:
  static constexpr std::size_t kGroupRecords = 256;
  // A group is unused when so many questions for each record that there is have not been for one of its own.
  static constexpr std::uint64_t kQuestionsPerRecordUntilUnused = 4;
  static constexpr std::uint64_t kIndexBytesPerRecord = 256;

  explicit MemoryTier(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Null: it is not here. A record of the same place and another version is given up.
  std::shared_ptr<const Value> find(const Key& key);

  // `records_known`: of all data sets, here and on the disk. What does not fit is not kept.
  void add(const Key& key, std::shared_ptr<const Value> value, std::uint64_t records_known);

  // Forgets the record of this place if its bytes are not what they were.
  void drop_if_damaged(const Key& key);

  std::uint64_t bytes() const;
  std::uint64_t records() const;

 private:
  struct Group {
    std::vector<std::string> places;
    std::uint64_t asked_at = 0;  // the number of the question
  };
  using Groups = std::list<Group>;
  struct Entry {
    std::string version;
    std::shared_ptr<const Value> value;
    Groups::iterator group;
  };
  using Index = std::unordered_map<std::string, Entry>;

  // REQUIRES, for all below: mutex_ is held.
  static std::uint64_t bytes_of(const std::string& place, const Entry& entry);
  void forget(Index::iterator entry);
  bool make_room(std::uint64_t bytes, std::uint64_t records_known);
  Groups::iterator group_for_next();

  const std::uint64_t bytes_max_;
  mutable std::mutex mutex_;
  Index index_;
  Groups groups_;  // the one that was asked for last comes first
  Groups::iterator filling_ = groups_.end();
  std::uint64_t bytes_ = 0;
  std::uint64_t questions_ = 0;
};

}  // namespace sluice::cache
