#include "src/base/checksum.h"

#include <bit>
#include <cstdio>
#include <cstring>

namespace sluice {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5;
constexpr std::size_t kStripeBytes = 32;

template <typename Word>
std::uint64_t read(const std::uint8_t* bytes) {
  static_assert(std::endian::native == std::endian::little);
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t word) { return std::rotl(lane + word * kPrime2, 31) * kPrime1; }

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) { return (hash ^ round(0, lane)) * kPrime1 + kPrime4; }

std::uint64_t finish(std::uint64_t hash, const std::uint8_t* at, const std::uint8_t* end) {
  for (; end - at >= 8; at += 8) hash = std::rotl(hash ^ round(0, read<std::uint64_t>(at)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ (read<std::uint32_t>(at) * kPrime1), 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < end; ++at) hash = std::rotl(hash ^ (*at * kPrime5), 11) * kPrime1;
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

}  // namespace

std::uint64_t checksum(std::span<const std::uint8_t> bytes) {
  const std::uint8_t* at = bytes.data();
  const std::uint8_t* const end = at + bytes.size();
  std::uint64_t hash = kPrime5;
  if (bytes.size() >= kStripeBytes) {
    // Four variables: an array of lanes, which g++ leaves in memory, takes three times as long.
    std::uint64_t a = kPrime1 + kPrime2, b = kPrime2, c = 0, d = 0 - kPrime1;
    for (; static_cast<std::size_t>(end - at) >= kStripeBytes; at += kStripeBytes) {
      a = round(a, read<std::uint64_t>(at));
      b = round(b, read<std::uint64_t>(at + 8));
      c = round(c, read<std::uint64_t>(at + 16));
      d = round(d, read<std::uint64_t>(at + 24));
    }
    hash = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
    for (const std::uint64_t lane : {a, b, c, d}) hash = merge(hash, lane);
  }
  return finish(hash + bytes.size(), at, end);
}

std::string hexadecimal(std::uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace sluice
