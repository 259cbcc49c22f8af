// Which of many contestants has the highest standing, where one standing changes at a time.
//
// A tree of matches over fixed places, as in a knockout tournament: a change repeats the matches on the way from its
// place to the root. The rivals on that way are known beforehand, so the processor fetches all of them at once, while
// each step down a heap waits for the one before. Source: Knuth, The Art of Computer Programming, volume 3, section
// 5.4.1.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice::scheduler {

// Two figures, of which the first counts more. The default takes no part: it is lower than any other.
struct Standing {
  std::uint64_t first = 0;
  std::uint64_t then = 0;

  friend auto operator<=>(const Standing&, const Standing&) = default;

  // Numbers without a sign that compare like the given ones, 0 the least of all. REQUIRES: not the greatest of all
  static std::uint64_t of(std::int64_t number) { return static_cast<std::uint64_t>(number) ^ kTopBit; }
  static std::uint64_t of(double number) {
    const auto bits = std::bit_cast<std::uint64_t>(number + 0.0);  // -0 is no other number than 0
    return (bits & kTopBit) != 0 ? ~bits : bits | kTopBit;
  }

 private:
  static constexpr std::uint64_t kTopBit = std::uint64_t{1} << 63;
};

class Tournament {
 public:
  explicit Tournament(std::vector<Standing> standings = {})
      : standings_(std::move(standings)),
        places_(std::bit_ceil(std::max<std::size_t>(standings_.size(), 1))),
        winners_(2 * places_) {
    standings_.resize(places_);
    for (std::size_t place = 0; place < places_; ++place) winners_[places_ + place] = static_cast<int>(place);
    for (std::size_t match = places_ - 1; match > 0; --match) {
      const int left = winners_[2 * match], right = winners_[2 * match + 1];
      winners_[match] = standings_[left] < standings_[right] ? right : left;
    }
  }

  // The highest; of equals, the one with the lowest number.
  int winner() const { return winners_[1]; }
  const Standing& standing(int contestant) const { return standings_[contestant]; }

  void set(int contestant, Standing standing) {
    standings_[contestant] = standing;
    const Standing* const standings = standings_.data();
    int* const winners = winners_.data();
    int winner = contestant;
    for (std::size_t at = places_ + contestant; at > 1; at /= 2) {
      const int rival = winners[at ^ 1];
      const Standing& of_rival = standings[rival];
      // Without a branch, as the processor could not guess it. Of equals the left one wins: the rival where `at` is
      // odd.
      const bool loses = (standing.first < of_rival.first) |
                         ((standing.first == of_rival.first) & (standing.then < of_rival.then + (at & 1)));
      const std::uint64_t change = std::uint64_t{0} - static_cast<std::uint64_t>(loses);  // all bits, or none
      standing.first ^= (standing.first ^ of_rival.first) & change;
      standing.then ^= (standing.then ^ of_rival.then) & change;
      winner ^= (winner ^ rival) & static_cast<int>(change);
      winners[at / 2] = winner;
    }
  }

  // The winner of that one of so many equal parts in which the contestant is. REQUIRES: a power of two
  int winner_of_part(int contestant, std::size_t parts) const {
    const std::size_t at = places_ + contestant;
    return winners_[at / std::max<std::size_t>(places_ / parts, 1)];
  }

 private:
  std::vector<Standing> standings_;  // by place
  std::size_t places_;               // a power of two
  std::vector<int> winners_;         // of match 1, the last, to places_ - 1; then the places themselves
};

}  // namespace sluice::scheduler
