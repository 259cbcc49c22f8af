// The daemons of a cluster that share their records: each record is kept by its home alone (src/cache/homes.h), and
// each file so read from its source once for all nodes.
//
// A pod asks its own node's daemon. That one asks the record's home, with the pod's token, where it has not got the
// record itself. The home goes no further, whatever it thinks of the record's home.
// Waits: a pod has its answer kAnswerWithin after its question came, or a miss. That is less than its own patience, so
// that no fault of a peer makes it leave its own daemon.
// What a job announces goes to all of them, as each is asked for its part of every epoch.
// Bounds: Homes::kMembersMost daemons.
// Thread safety: all methods may be called from any thread; set() by one at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "src/cache/homes.h"
#include "worker-image/cache/peer.h"

namespace sluice::node_cache {

class Peers {
 public:
  static constexpr std::chrono::milliseconds kPatience{150};      // with one peer
  static constexpr std::chrono::milliseconds kAnswerWithin{200};  // NodeCacheClient::kPatience less some for the way
  static constexpr std::chrono::seconds kAnnouncePatience{5};     // nothing waits for it but other announcements
  static constexpr std::chrono::seconds kAnnounceWithin{30};      // to all of them
  static constexpr std::size_t kUnknownMost = 256;

  using Connect = std::function<std::shared_ptr<transport::UnaryClient>(const std::string& address)>;

  // `own`: this daemon's address, as the others find it. Alone until set(). REQUIRES: the clock outlives it.
  Peers(std::string own, Connect connect, const Clock& clock);

  // These are the daemons by now. Those that were known before go on as they are.
  void set(const std::set<std::string>& addresses);

  // The daemon that has the key's record. Null: this one.
  std::shared_ptr<Peer> home_of(const cache::Key& key) const;

  // Tells all of them what the pod with this token has announced. Those that do not answer, or that the time does not
  // suffice for, hear of the next epoch.
  void announce(const std::string& token, const cache::Announcement& announcement);

  // Whether one of them did not know the data set when it was announced without its places, which the pod has. It is
  // said once.
  bool wants_places(std::uint64_t data_set);

  std::shared_ptr<const cache::Homes> homes() const;

  // How long a question may wait for a peer that came at this time; not positive: no more.
  Clock::Duration patience_for(Clock::TimePoint came) const;
  Clock::TimePoint now() const { return clock_.now(); }

  // What this daemon says of its own room, with that of the others. Where one has no room for the largest record, it
  // counts as full, and says of each record whether it has room for it: else pods would send all that the one of many
  // remainders is large enough for.
  cache::Answer with_room_of_others(cache::Answer own) const;

  std::size_t count() const;
  const PeerCounters& counters() const { return counters_; }

 private:
  struct Known {
    cache::Homes homes;
    std::map<std::string, std::shared_ptr<Peer>> peers;
  };
  std::shared_ptr<const Known> known() const;

  const std::string own_;
  const Connect connect_;
  const Clock& clock_;
  PeerCounters counters_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Known> known_;
  std::set<std::uint64_t> unknown_data_sets_;  // at some peer; kUnknownMost
};

}  // namespace sluice::node_cache
