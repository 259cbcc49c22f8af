#include "src/cache/node_cache_messages.h"

#include <cassert>
#include <cstring>

#include "src/cache/checksum.h"

namespace sluice::cache {
namespace {

constexpr std::uint32_t kAnswerMagic = 0x31414353;  // "SCA1"; the digit is the version
constexpr std::uint32_t kFound = 1;
constexpr std::uint32_t kPaused = 2;
constexpr std::uint32_t kWanted = 4;
constexpr std::uint32_t kAskerMagic = 0x31514353;  // "SCQ1"

struct FixedAnswer {
  std::uint32_t magic = kAnswerMagic;
  std::uint32_t flags = 0;
  std::uint64_t free_bytes = 0;
};
static_assert(sizeof(FixedAnswer) == kAnswerBytes);

struct Asker {
  std::uint32_t magic = kAskerMagic;
  std::uint32_t nothing = 0;
  JobId job = 0;
};
static_assert(sizeof(Asker) == kAskerBytes);

// The job whose number begins `message`, and takes it off; nullopt: a record begins it.
std::optional<JobId> take_asker(std::span<const std::uint8_t>& message) {
  Asker asker;
  if (message.size() < sizeof(asker)) return std::nullopt;
  std::memcpy(&asker, message.data(), sizeof(asker));
  if (asker.magic != kAskerMagic || asker.nothing != 0) return std::nullopt;
  message = message.subspan(sizeof(asker));
  return asker.job;
}

// Of the record whose head begins `bytes`; nullopt: there is none.
std::optional<RecordHead> head_of(std::span<const std::uint8_t> bytes, std::size_t& length) {
  if (bytes.size() < kFixedHeadBytes) return std::nullopt;
  const auto expected = head_bytes(bytes.first(kFixedHeadBytes));
  if (!expected || *expected > bytes.size()) return std::nullopt;
  length = *expected;
  return decode_head(bytes.first(length));
}

}  // namespace

std::array<std::uint8_t, kAskerBytes> encode_asker(JobId job) {
  const Asker asker{.job = job};
  std::array<std::uint8_t, kAskerBytes> bytes{};
  std::memcpy(bytes.data(), &asker, sizeof(asker));
  return bytes;
}

std::optional<Question> decode_question(std::span<const std::uint8_t> message) {
  const auto job = take_asker(message);
  std::size_t length = 0;
  const auto head = head_of(message, length);
  if (!head || head->value_bytes != message.size() - length) return std::nullopt;
  const auto value = message.subspan(length);
  if (checksum(value) != head->value_checksum) return std::nullopt;
  return Question{job, {std::string(head->place), std::string(head->version)}, value, head->value_checksum};
}

std::array<std::uint8_t, kAnswerBytes> encode_answer(const Answer& answer) {
  const std::uint32_t flags =
      (answer.is_found ? kFound : 0) | (answer.is_paused ? kPaused : 0) | (answer.is_wanted ? kWanted : 0);
  const FixedAnswer fixed{kAnswerMagic, flags, answer.free_bytes};
  std::array<std::uint8_t, kAnswerBytes> bytes{};
  std::memcpy(bytes.data(), &fixed, sizeof(fixed));
  return bytes;
}

std::optional<Answer> decode_answer(std::span<const std::uint8_t> bytes) {
  assert(bytes.size() == kAnswerBytes);
  FixedAnswer fixed;
  std::memcpy(&fixed, bytes.data(), sizeof(fixed));
  if (fixed.magic != kAnswerMagic || (fixed.flags & ~(kFound | kPaused | kWanted)) != 0) return std::nullopt;
  return Answer{(fixed.flags & kFound) != 0, (fixed.flags & kPaused) != 0, (fixed.flags & kWanted) != 0,
                fixed.free_bytes};
}

bool is_record_of(const Key& key, std::span<const std::uint8_t> head, std::span<const std::uint8_t> value) {
  std::size_t length = 0;
  const auto record = head_of(head, length);
  return record && length == head.size() && record->place == key.place && record->version == key.version &&
         record->value_bytes == value.size() && checksum(value) == record->value_checksum;
}

}  // namespace sluice::cache
