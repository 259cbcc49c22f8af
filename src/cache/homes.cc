#include "src/cache/homes.h"

#include <array>

#include "src/base/checksum.h"
#include "src/cache/record.h"

namespace sluice::cache {
namespace {

std::uint64_t worth_of(std::uint64_t member, std::uint64_t place) {
  const std::array<std::uint64_t, 2> both{member, place};
  return checksum({reinterpret_cast<const std::uint8_t*>(both.data()), sizeof(both)});
}

}  // namespace

Homes::Homes(const std::string& own, const std::set<std::string>& found) : own_(own) {
  std::set<std::string> all = found;
  all.insert(own);
  for (const std::string& address : all) {
    if (members_.size() == kMembersMost) break;
    members_.push_back({address, hash_of(address)});
  }
}

const std::string* Homes::elsewhere(std::uint64_t place) const {
  const Member* home = nullptr;
  std::uint64_t most = 0;
  for (const Member& member : members_) {
    const std::uint64_t worth = worth_of(member.hash, place);
    if (home != nullptr && worth <= most) continue;
    home = &member;
    most = worth;
  }
  return home->address == own_ ? nullptr : &home->address;
}

std::vector<bool> Homes::are_here(std::span<const std::uint64_t> places) const {
  std::vector<bool> here(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) here[i] = elsewhere(places[i]) == nullptr;
  return here;
}

std::uint64_t Homes::hash() const {
  std::uint64_t hash = 0;
  for (const Member& member : members_) hash = worth_of(hash, member.hash);
  return hash;
}

std::vector<std::string> Homes::others() const {
  std::vector<std::string> addresses;
  for (const Member& member : members_)
    if (member.address != own_) addresses.push_back(member.address);
  return addresses;
}

}  // namespace sluice::cache
