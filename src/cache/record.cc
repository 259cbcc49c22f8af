#include "src/cache/record.h"

#include <cassert>
#include <cstring>

#include "src/base/checksum.h"
#include "src/cache/tenant.h"

namespace sluice::cache {
namespace {

constexpr std::uint32_t kRecordMagic = 0x44524353;  // "SCRD"

struct FixedHead {
  std::uint32_t magic = kRecordMagic;
  std::uint32_t place_bytes = 0;
  std::uint32_t version_bytes = 0;
  std::uint32_t value_bytes = 0;
  std::uint64_t value_checksum = 0;
  std::uint64_t head_checksum = 0;
};
static_assert(sizeof(FixedHead) == kFixedHeadBytes);
constexpr std::size_t kCheckedBytes = offsetof(FixedHead, head_checksum);

constexpr std::uint32_t kGapMagic = 0x50474353;  // "SCGP"

struct GapHead {
  std::uint32_t magic = kGapMagic;
  std::uint32_t zeros[3] = {};
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;
};
static_assert(sizeof(GapHead) == kFixedHeadBytes);

FixedHead fixed_part(std::span<const std::uint8_t> head) {
  FixedHead fixed;
  std::memcpy(&fixed, head.data(), sizeof(fixed));
  return fixed;
}

// The checksum field itself counts as zero.
std::uint64_t head_checksum(std::span<const std::uint8_t> head) {
  std::vector<std::uint8_t> checked(head.begin(), head.end());
  std::memset(checked.data() + kCheckedBytes, 0, sizeof(FixedHead::head_checksum));
  return checksum(checked);
}

}  // namespace

std::uint64_t hash_of(std::string_view text) {
  const std::size_t end = text.starts_with(kTenantMark) ? text.find('\0') : std::string_view::npos;
  if (end != std::string_view::npos)
    return of_tenant(text.substr(kTenantMark.size(), end - kTenantMark.size()), hash_of(text.substr(end + 1)));
  return checksum({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

bool has_legal_lengths(const Key& key, std::size_t value_bytes) {
  return key.place.size() <= kPlaceBytesMax && key.version.size() <= kVersionBytesMax && value_bytes <= kValueBytesMax;
}

std::uint64_t record_bytes(const Key& key, std::size_t value_bytes) {
  return kFixedHeadBytes + key.place.size() + key.version.size() + value_bytes;
}

std::vector<std::uint8_t> encode_head(const Key& key, std::span<const std::uint8_t> value) {
  return encode_head(key, value.size(), checksum(value));
}

std::vector<std::uint8_t> encode_head(const Key& key, std::size_t value_bytes, std::uint64_t value_checksum) {
  assert(has_legal_lengths(key, value_bytes));
  FixedHead fixed;
  fixed.place_bytes = static_cast<std::uint32_t>(key.place.size());
  fixed.version_bytes = static_cast<std::uint32_t>(key.version.size());
  fixed.value_bytes = static_cast<std::uint32_t>(value_bytes);
  fixed.value_checksum = value_checksum;
  std::vector<std::uint8_t> head(sizeof(fixed));
  std::memcpy(head.data(), &fixed, sizeof(fixed));
  head.insert(head.end(), key.place.begin(), key.place.end());
  head.insert(head.end(), key.version.begin(), key.version.end());
  fixed.head_checksum = head_checksum(head);
  std::memcpy(head.data(), &fixed, sizeof(fixed));
  return head;
}

std::vector<std::uint8_t> encode_gap(std::uint64_t bytes) {
  assert(bytes >= sizeof(GapHead));
  GapHead gap;
  gap.bytes = bytes;
  std::vector<std::uint8_t> head(sizeof(gap));
  std::memcpy(head.data(), &gap, sizeof(gap));
  gap.checksum = checksum(std::span(head).first(offsetof(GapHead, checksum)));
  std::memcpy(head.data(), &gap, sizeof(gap));
  return head;
}

std::optional<std::uint64_t> gap_bytes(std::span<const std::uint8_t> fixed) {
  assert(fixed.size() == kFixedHeadBytes);
  GapHead gap;
  std::memcpy(&gap, fixed.data(), sizeof(gap));
  if (gap.magic != kGapMagic || gap.bytes < sizeof(gap)) return std::nullopt;
  if (checksum(fixed.first(offsetof(GapHead, checksum))) != gap.checksum) return std::nullopt;
  return gap.bytes;
}

std::optional<std::size_t> head_bytes(std::span<const std::uint8_t> fixed_bytes) {
  assert(fixed_bytes.size() == kFixedHeadBytes);
  const FixedHead fixed = fixed_part(fixed_bytes);
  if (fixed.magic != kRecordMagic || fixed.place_bytes > kPlaceBytesMax || fixed.version_bytes > kVersionBytesMax ||
      fixed.value_bytes > kValueBytesMax) {
    return std::nullopt;
  }
  return sizeof(fixed) + fixed.place_bytes + fixed.version_bytes;
}

std::optional<RecordHead> decode_head(std::span<const std::uint8_t> head) {
  const FixedHead fixed = fixed_part(head);
  assert(head.size() == sizeof(fixed) + fixed.place_bytes + fixed.version_bytes);
  if (head_checksum(head) != fixed.head_checksum) return std::nullopt;
  const std::string_view names(reinterpret_cast<const char*>(head.data()) + sizeof(fixed), head.size() - sizeof(fixed));
  return RecordHead{names.substr(0, fixed.place_bytes), names.substr(fixed.place_bytes), fixed.value_bytes,
                    fixed.value_checksum};
}

}  // namespace sluice::cache
