// The generator MT19937 (Matsumoto and Nishimura, ACM TOMACS 8(1), 1998), which std::mt19937 is too, number for number.
//
// A sample has a generator of its own and takes few numbers of it. std::mt19937 computes 624 words when it is seeded
// and 624 when it is first asked, 3.5 microseconds, which is as much as all else of a small image. Here a word is
// computed when it is needed: the first number needs 398 of the seed's words and one new one, and a generator that is
// never asked costs nothing.
//
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::pipeline {

class MersenneTwister {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): words get their values one after the other
  explicit MersenneTwister(std::uint32_t seed) { words_[0] = seed; }

  std::uint32_t operator()() {
    constexpr std::uint32_t kHighBit = 0x80000000U;
    const std::size_t following = next_ + 1 < kWords ? next_ + 1 : 0;
    const std::size_t ahead = next_ + kAhead < kWords ? next_ + kAhead : next_ + kAhead - kWords;
    if (seeded_ < kWords) seed_to(next_ + kAhead < kWords ? ahead : kWords - 1);
    const std::uint32_t mixed = (words_[next_] & kHighBit) | (words_[following] & ~kHighBit);
    std::uint32_t word = words_[ahead] ^ (mixed >> 1) ^ ((mixed & 1) != 0 ? 0x9908B0DFU : 0);
    words_[next_] = word;
    next_ = following;
    word ^= word >> 11;
    word ^= (word << 7) & 0x9D2C5680U;
    word ^= (word << 15) & 0xEFC60000U;
    return word ^ (word >> 18);
  }

 private:
  static constexpr std::size_t kWords = 624;
  static constexpr std::size_t kAhead = 397;

  // Gives the seed's values to the words up to that one.
  void seed_to(std::size_t last) {
    for (; seeded_ <= last; ++seeded_) {
      const std::uint32_t before = words_[seeded_ - 1];
      words_[seeded_] = 1812433253U * (before ^ (before >> 30)) + static_cast<std::uint32_t>(seeded_);
    }
  }

  std::array<std::uint32_t, kWords> words_;
  std::size_t seeded_ = 1;  // so many have had the seed's value; those behind have none yet
  std::size_t next_ = 0;
};

}  // namespace sluice::pipeline
