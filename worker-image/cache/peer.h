// Another daemon of the cluster, which has records of this one's pods.
//
// It never holds a pod up, and gives no wrong byte, whatever the other end does:
// 1. An answer counts only if it is the record of the key that was asked for, with its checksum.
// 2. After one that is late, missing or of another version nothing is asked for a while (src/cache/breaker.h). A token
//    that it does not take is its pod's matter, and the others' questions go on.
// 3. What it would not keep is not sent, as its answers tell. One of an earlier version is told no orders.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/cache/breaker.h"
#include "src/cache/counters.h"
#include "src/cache/memory_tier.h"
#include "src/cache/node_cache_messages.h"
#include "src/cache/wanted_places.h"
#include "src/transport/unary_client.h"

namespace sluice::node_cache {

// Thread safety: each number may be read and changed by any thread.
struct PeerCounters {
  cache::Count finds = 0;  // that went to another daemon
  cache::Count keeps = 0;
  cache::Count announcements = 0;
  cache::Count hits = 0;  // of the finds
  cache::Count hit_bytes = 0;
  cache::Counters errors;  // the node's, and `damaged`
};

// A question of a pod, as it came.
struct PodQuestion {
  std::string token;
  std::vector<std::uint8_t> message;
  cache::Key asked;             // as the pod knows it
  cache::Key key;               // under its tenant
  std::size_t value_bytes = 0;  // that are to be kept
};

class Peer {
 public:
  // REQUIRES: clock and counters outlive it.
  Peer(std::shared_ptr<transport::UnaryClient> client, const Clock& clock, PeerCounters& counters)
      : client_(std::move(client)), counters_(counters), breaker_(clock) {}

  struct Reply {
    cache::Answer answer;
    std::shared_ptr<const cache::Value> value;  // null: it was not found
  };
  // nullopt: it was not asked, or there was no answer, which is counted.
  std::optional<Reply> find(const PodQuestion& question, Clock::Duration patience);
  void keep(const PodQuestion& question, Clock::Duration patience);
  // An announcement of the pod with this token. Whether the daemon takes the epoch into account; nullopt: it does not
  // say, and cannot.
  std::optional<bool> announce(const std::string& token, const cache::Announcement& announcement,
                               Clock::Duration patience);

  // As said by its last answer, or by none.
  std::uint64_t free_bytes() const { return free_bytes_; }
  bool is_paused() const { return is_paused_; }

 private:
  struct Answered {
    cache::Answer answer;
    transport::Payload whole;
  };
  // nullopt: there was no answer.
  std::optional<Answered> ask(const char* method, const std::string& token, std::span<const std::uint8_t> head,
                              std::span<const std::uint8_t> body, Clock::Duration patience);
  void failed(const Error& error, cache::Breaker::Leave leave);

  const std::shared_ptr<transport::UnaryClient> client_;  // of all rooms
  PeerCounters& counters_;
  cache::Breaker breaker_;
  cache::WantedPlaces wanted_;
  std::atomic<std::uint64_t> free_bytes_ = 0;
  std::atomic<bool> is_paused_ = true;
  std::atomic<bool> takes_orders_ = true;
};

}  // namespace sluice::node_cache
