// XXH64 with seed 0, by its published specification (github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
//
// It finds damage, not forgery: of damaged records about one in 2^64 goes unseen.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace sluice {

std::uint64_t checksum(std::span<const std::uint8_t> bytes);

// Of a hash: its sixteen digits.
std::string hexadecimal(std::uint64_t hash);

}  // namespace sluice
