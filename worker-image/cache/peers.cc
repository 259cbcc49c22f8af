#include "worker-image/cache/peers.h"

#include <algorithm>
#include <utility>

#include "src/base/logging.h"

namespace sluice::node_cache {

Peers::Peers(std::string own, Connect connect, const Clock& clock)
    : own_(std::move(own)),
      connect_(std::move(connect)),
      clock_(clock),
      known_(std::make_shared<const Known>(Known{cache::Homes(own_, {}), {}})) {}

void Peers::set(const std::set<std::string>& addresses) {
  const auto before = known();
  Known now{cache::Homes(own_, addresses), {}};
  for (const std::string& address : now.homes.others()) {
    const auto found = before->peers.find(address);
    now.peers[address] =
        found != before->peers.end() ? found->second : std::make_shared<Peer>(connect_(address), clock_, counters_);
  }
  const auto is_same = [](const auto& one, const auto& other) { return one.first == other.first; };
  if (std::ranges::equal(now.peers, before->peers, is_same)) return;
  log_info("cache", "shares its records with other nodes' caches", {{"peers", now.peers.size()}});
  std::lock_guard lock(mutex_);
  known_ = std::make_shared<const Known>(std::move(now));
}

std::shared_ptr<const Peers::Known> Peers::known() const {
  std::lock_guard lock(mutex_);
  return known_;
}

std::shared_ptr<Peer> Peers::home_of(const cache::Key& key) const {
  const auto all = known();
  const std::string* const home = all->homes.elsewhere(cache::hash_of(key.place));
  return home == nullptr ? nullptr : all->peers.at(*home);
}

void Peers::announce(const std::string& token, const cache::Announcement& announcement) {
  const auto until = clock_.now() + kAnnounceWithin;
  const cache::Announcement order_alone{announcement.job, announcement.data_set, announcement.order, {}};
  const auto all = known();
  for (const auto& [address, peer] : all->peers) {
    const auto patience = std::min<Clock::Duration>(kAnnouncePatience, until - clock_.now());
    const bool knows = patience.count() > 0 && peer->announce(token, order_alone, patience).value_or(true);
    if (knows) continue;
    if (patience.count() > 0 && !announcement.places.empty()) {
      peer->announce(token, announcement, patience);
      continue;
    }
    std::lock_guard lock(mutex_);
    if (unknown_data_sets_.size() >= kUnknownMost) unknown_data_sets_.clear();
    unknown_data_sets_.insert(announcement.data_set);
  }
}

bool Peers::wants_places(std::uint64_t data_set) {
  std::lock_guard lock(mutex_);
  return unknown_data_sets_.erase(data_set) > 0;
}

std::shared_ptr<const cache::Homes> Peers::homes() const {
  const auto all = known();
  return {all, &all->homes};
}

Clock::Duration Peers::patience_for(Clock::TimePoint came) const {
  return std::min<Clock::Duration>(kPatience, came + kAnswerWithin - clock_.now());
}

cache::Answer Peers::with_room_of_others(cache::Answer own) const {
  const auto counted = [](std::uint64_t free_bytes) {
    return free_bytes < cache::kNodeRecordBytesMax ? 0 : free_bytes;
  };
  const auto all = known();
  own.free_bytes = counted(own.free_bytes);
  for (const auto& [address, peer] : all->peers) {
    if (peer->is_paused()) continue;
    own.is_paused = false;
    own.free_bytes += counted(peer->free_bytes());
  }
  return own;
}

std::size_t Peers::count() const { return known()->peers.size(); }

}  // namespace sluice::node_cache
