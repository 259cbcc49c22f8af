// Where records are kept, as their readers see it: the segments of an own disk (segment_store.h), or the node's cache
// (node_cache_client.h).
//
// Nothing here is an error: what cannot be kept or found is counted, and comes from its source.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "src/base/epoch_order.h"
#include "src/base/result.h"
#include "src/cache/counters.h"
#include "src/cache/record.h"

namespace sluice::cache {

class RecordStore {
 public:
  virtual ~RecordStore() = default;

  // Replaces `value` with the bytes that were added for `key`. False: they are not here, and `value` is unspecified.
  virtual bool find(const Key& key, std::vector<std::uint8_t>& value) = 0;

  // Whether find() is likely to find it, told without a wait: what is read ahead from the source depends on it, and
  // nothing else.
  virtual bool may_have(const Key& /*key*/) { return false; }

  // Whether only a question tells, and waits for another process.
  virtual bool is_asked_ahead() const { return false; }
  // As find(), for a sample whose turn has not come: it may take longer.
  virtual bool find_ahead(const Key& key, std::vector<std::uint8_t>& value) { return find(key, value); }

  // Whether add() would keep a value of so many bytes, unless the disk refuses it. Saves the making of it.
  virtual bool has_room_for(const Key& key, std::size_t value_bytes) = 0;

  // Whether nothing is stored now, as the last write has failed.
  virtual bool is_paused() = 0;

  // Keeps `value`, or counts why not. Lengths beyond those of record.h are not kept.
  virtual void add(const Key& key, std::span<const std::uint8_t> value) = 0;

  // Of the bound on bytes, what no record needs. Records of earlier processes that may make room are not counted.
  virtual std::uint64_t free_bytes() const = 0;

  // An epoch of a data set begins whose records are at `places`, hash_of() each: for a store whose records are shared
  // with other jobs. May take its time.
  virtual void announce(std::span<const std::uint64_t> /*places*/, const EpochOrder& /*order*/) {}
  virtual bool takes_orders() const { return false; }

  // What a question takes beside the reading of the value.
  virtual double asking_seconds() const { return 0; }
};

// To be called once, on a thread that may wait for it. REQUIRES: the counters outlive the store.
using OpenStore = std::function<Result<std::unique_ptr<RecordStore>>(Counters& counters, const std::stop_token& stop)>;

}  // namespace sluice::cache
