// Where the records of a cluster are at home: each with one of the daemons, by rendezvous hashing (Thaler and
// Ravishankar, 1998).
//
// Of all members, the one whose hash with the record's place is the largest. So all that know the same members agree
// without a word, and one that comes or goes moves the records of one part in `members`, and no others.
// Bounds: kMembersMost; of more, those with the first addresses. Cost: O(members).
// Thread safety: a value that does not change.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace sluice::cache {

class Homes {
 public:
  static constexpr std::size_t kMembersMost = 256;

  // `own`: this daemon's address, whether it was found or not.
  Homes(const std::string& own, const std::set<std::string>& found);

  // The address of a place's home; nullptr: it is this daemon. It lives as long as this.
  const std::string* elsewhere(std::uint64_t place) const;

  // Of each place, whether its home is this daemon.
  std::vector<bool> are_here(std::span<const std::uint64_t> places) const;

  // Tells these members from others: what is known of one's part is over when they change.
  std::uint64_t hash() const;

  // The others' addresses.
  std::vector<std::string> others() const;

 private:
  struct Member {
    std::string address;
    std::uint64_t hash = 0;
  };
  std::string own_;
  std::vector<Member> members_;
};

}  // namespace sluice::cache
