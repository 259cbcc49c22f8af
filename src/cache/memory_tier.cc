#include "src/cache/memory_tier.h"

#include <algorithm>

#include "src/base/checksum.h"

namespace sluice::cache {

std::shared_ptr<const Value> MemoryTier::find(const Key& key) {
  std::lock_guard lock(mutex_);
  ++questions_;
  const auto found = index_.find(key.place);
  if (found == index_.end()) return nullptr;
  if (found->second.version != key.version) {
    forget(found);
    return nullptr;
  }
  const Groups::iterator group = found->second.group;
  group->asked_at = questions_;
  groups_.splice(groups_.begin(), groups_, group);
  return found->second.value;
}

void MemoryTier::add(const Key& key, std::shared_ptr<const Value> value, std::uint64_t records_known) {
  std::lock_guard lock(mutex_);
  if (const auto before = index_.find(key.place); before != index_.end()) {
    if (before->second.version == key.version) return;  // another thread was faster
    forget(before);
  }
  Entry entry{key.version, std::move(value), {}};
  const std::uint64_t bytes = bytes_of(key.place, entry);
  if (!make_room(bytes, records_known)) return;
  entry.group = group_for_next();
  entry.group->places.push_back(key.place);
  index_.emplace(key.place, std::move(entry));
  bytes_ += bytes;
}

void MemoryTier::drop_if_damaged(const Key& key) {
  std::shared_ptr<const Value> value;
  {
    std::lock_guard lock(mutex_);
    const auto found = index_.find(key.place);
    if (found == index_.end()) return;
    value = found->second.value;
  }
  if (checksum(value->bytes) == value->checksum) return;
  std::lock_guard lock(mutex_);
  const auto found = index_.find(key.place);
  if (found != index_.end() && found->second.value == value) forget(found);
}

std::uint64_t MemoryTier::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

std::uint64_t MemoryTier::records() const {
  std::lock_guard lock(mutex_);
  return index_.size();
}

std::uint64_t MemoryTier::bytes_of(const std::string& place, const Entry& entry) {
  // The place is in its group, too.
  return entry.value->bytes.size() + 2 * place.size() + entry.version.size() + kIndexBytesPerRecord;
}

void MemoryTier::forget(Index::iterator entry) {
  bytes_ -= bytes_of(entry->first, entry->second);
  const Groups::iterator group = entry->second.group;
  std::erase(group->places, entry->first);
  index_.erase(entry);
  if (!group->places.empty() || group == filling_) return;
  groups_.erase(group);
}

bool MemoryTier::make_room(std::uint64_t bytes, std::uint64_t records_known) {
  if (bytes > bytes_max_) return false;
  const std::uint64_t patience =
      kQuestionsPerRecordUntilUnused * std::max<std::uint64_t>({records_known, index_.size(), kGroupRecords});
  while (bytes_ + bytes > bytes_max_) {
    if (groups_.empty() || questions_ - groups_.back().asked_at < patience) return false;
    const Groups::iterator unused = std::prev(groups_.end());
    if (unused == filling_) filling_ = groups_.end();
    for (const std::string& place : unused->places) {
      const auto entry = index_.find(place);
      bytes_ -= bytes_of(place, entry->second);
      index_.erase(entry);
    }
    groups_.erase(unused);
  }
  return true;
}

MemoryTier::Groups::iterator MemoryTier::group_for_next() {
  if (filling_ == groups_.end() || filling_->places.size() >= kGroupRecords) {
    groups_.push_front({{}, questions_});
    filling_ = groups_.begin();
  }
  filling_->asked_at = questions_;
  return filling_;
}

}  // namespace sluice::cache
