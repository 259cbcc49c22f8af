// The cache of the node, as a process uses it: a store whose records other processes share.
//
// It never holds a job up, and gives no wrong byte, whatever the other end does:
// 1. An answer counts only if it is the record of the key that was asked for, with its checksum, which this process
//    computes itself. Anything else is a miss and a counted error.
// 2. After kPatience without an answer (kPatienceAhead for what is asked ahead), or where there is no daemon, nothing
//    is asked for a while (breaker.h), and the threads go on to the source.
// 3. What is not kept, as there is no room, other records are used sooner or the disk refuses it, costs no message:
//    each answer tells.
// 4. What is announced and not answered, or not understood, is not announced again, and changes nothing else.
// 5. A cache of an earlier version refuses a question that tells the job. It is asked without from then on, and keeps
//    what it has, as it does.
// Thread safety: as RecordStore's.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "src/base/clock.h"
#include "src/cache/breaker.h"
#include "src/cache/node_cache_line.h"
#include "src/cache/node_cache_messages.h"
#include "src/cache/record_store.h"
#include "src/cache/wanted_places.h"

namespace sluice::cache {

class NodeCacheClient final : public RecordStore {
 public:
  static constexpr std::chrono::milliseconds kPatience{250};
  static constexpr int kPatienceAhead = 4;  // times that: a batch waits, and no thread with it
  static constexpr std::chrono::seconds kPatienceForAnnouncements{2};  // no sample waits for them

  // `job`: of which this process is a part; nullopt: it is not told. REQUIRES: clock and counters outlive it.
  NodeCacheClient(std::unique_ptr<NodeCacheLine> line, std::optional<JobId> job, const Clock& clock, Counters& counters,
                  Clock::Duration patience = kPatience);

  bool find(const Key& key, std::vector<std::uint8_t>& value) override { return find(key, value, patience_); }
  bool is_asked_ahead() const override { return true; }
  bool find_ahead(const Key& key, std::vector<std::uint8_t>& value) override {
    return find(key, value, kPatienceAhead * patience_);
  }
  bool has_room_for(const Key& key, std::size_t value_bytes) override;
  bool is_paused() override;
  void add(const Key& key, std::span<const std::uint8_t> value) override;
  void announce(std::span<const std::uint64_t> places, const EpochOrder& order) override;
  bool takes_orders() const override { return tells_job_; }
  // 0 until the first answer.
  std::uint64_t free_bytes() const override { return free_bytes_; }
  double asking_seconds() const override { return asking_seconds_; }

 private:
  struct Reply {
    Answer answer;
    std::vector<std::uint8_t> head;  // of the record
  };

  // nullopt: there was no answer. Whether it is taken into account.
  std::optional<bool> announce(const Announcement& announcement);
  bool find(const Key& key, std::vector<std::uint8_t>& value, Clock::Duration patience);
  // nullopt: there was no answer, which is counted.
  std::optional<Reply> ask(NodeCacheLine::Wish wish, const Key& key, std::span<const std::uint8_t> value,
                           Clock::Duration patience, std::vector<std::uint8_t>& answer_value);
  void answered(const Answer& answer);
  void failed(const Error& error, Breaker::Leave leave);
  void note_asking(Clock::Duration took);

  const std::unique_ptr<NodeCacheLine> line_;
  const std::optional<JobId> job_;
  const Clock& clock_;
  Counters& counters_;
  const Clock::Duration patience_;
  std::atomic<std::uint64_t> free_bytes_ = 0;
  std::atomic<bool> is_paused_ = true;  // as said by the last answer
  std::atomic<double> asking_seconds_ = 0;
  std::atomic<bool> is_measured_ = false;  // or is being measured
  std::atomic<bool> tells_job_;
  WantedPlaces wanted_;
  Breaker breaker_;
};

// The node's cache at the end of a line, for the first call of what it returns. It may come, go and come back later.
// REQUIRES: the clock outlives the store.
OpenStore node_cache_at(std::unique_ptr<NodeCacheLine> line, std::optional<JobId> job, const Clock& clock);

}  // namespace sluice::cache
