// One record of a segment: what it is of, in which version, and the bytes.
//
//   u32 magic, u32 place_bytes, u32 version_bytes, u32 value_bytes, u64 checksum of the value,
//   u64 checksum of all before it and of place and version; place; version; value
// Numbers are little-endian. The part before the value is the record's head.
// Thread safety: pure functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::cache {

// Equal keys mean equal bytes. A place holds one version at a time; both are compared in full.
struct Key {
  std::string place;
  std::string version;

  friend bool operator==(const Key&, const Key&) = default;
};

inline constexpr std::size_t kFixedHeadBytes = 32;
inline constexpr std::size_t kPlaceBytesMax = 1 << 16;
inline constexpr std::size_t kVersionBytesMax = 1 << 10;
inline constexpr std::size_t kValueBytesMax = std::size_t{1} << 30;

// By which a place or a version is known where it would take too much room itself. Two of them may have the same.
std::uint64_t hash_of(std::string_view text);

// Whether a record may have these lengths.
bool has_legal_lengths(const Key& key, std::size_t value_bytes);

// Of the whole record.
std::uint64_t record_bytes(const Key& key, std::size_t value_bytes);

// REQUIRES: has_legal_lengths()
std::vector<std::uint8_t> encode_head(const Key& key, std::span<const std::uint8_t> value);
std::vector<std::uint8_t> encode_head(const Key& key, std::size_t value_bytes, std::uint64_t value_checksum);

// Where records were that are gone: a head, then bytes of any value, whose blocks the disk may have back.
//   u32 magic, 12 bytes of zero, u64 bytes with this head, u64 checksum of all before it
// REQUIRES: bytes >= kFixedHeadBytes
std::vector<std::uint8_t> encode_gap(std::uint64_t bytes);

// nullopt: no gap begins with these bytes. REQUIRES: fixed.size() == kFixedHeadBytes
std::optional<std::uint64_t> gap_bytes(std::span<const std::uint8_t> fixed);

struct RecordHead {
  std::string_view place;  // into the decoded bytes
  std::string_view version;
  std::size_t value_bytes = 0;
  std::uint64_t value_checksum = 0;
};

// How long the head is whose first bytes these are. nullopt: this is no record.
// REQUIRES: fixed.size() == kFixedHeadBytes
std::optional<std::size_t> head_bytes(std::span<const std::uint8_t> fixed);

// nullopt: damaged. REQUIRES: head.size() is what head_bytes() said of it.
std::optional<RecordHead> decode_head(std::span<const std::uint8_t> head);

}  // namespace sluice::cache
