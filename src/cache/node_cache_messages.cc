#include "src/cache/node_cache_messages.h"

#include <cassert>
#include <cstring>

#include "src/base/checksum.h"

namespace sluice::cache {
namespace {

constexpr std::uint32_t kAnswerMagic = 0x31414353;  // "SCA1"; the digit is the version
constexpr std::uint32_t kFound = 1;
constexpr std::uint32_t kPaused = 2;
constexpr std::uint32_t kWanted = 4;
constexpr std::uint32_t kAskerMagic = 0x31514353;         // "SCQ1"
constexpr std::uint32_t kAnnouncementMagic = 0x314F4353;  // "SCO1"

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

struct FixedAnnouncement {
  std::uint32_t magic = kAnnouncementMagic;
  std::uint32_t has_places = 0;
  std::uint64_t data_set = 0;
  std::uint64_t seed = 0;
  std::uint64_t length = 0;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  std::uint32_t drops_last = 0;
  std::uint32_t is_next = 0;
};
static_assert(sizeof(FixedAnnouncement) == kAnnouncementBytes - kAskerBytes);

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

std::array<std::uint8_t, kAnnouncementBytes> encode_announcement(const Announcement& announcement) {
  const EpochOrder& order = announcement.order;
  const FixedAnnouncement fixed{.has_places = announcement.places.empty() ? 0U : 1U,
                                .data_set = announcement.data_set,
                                .seed = order.seed,
                                .length = order.length,
                                .rank = order.rank,
                                .ranks = order.ranks,
                                .drops_last = order.drops_last ? 1U : 0U,
                                .is_next = order.is_next ? 1U : 0U};
  std::array<std::uint8_t, kAnnouncementBytes> bytes{};
  std::ranges::copy(encode_asker(announcement.job), bytes.begin());
  std::memcpy(bytes.data() + kAskerBytes, &fixed, sizeof(fixed));
  return bytes;
}

std::span<const std::uint8_t> bytes_of_places(std::span<const std::uint64_t> places) {
  return {reinterpret_cast<const std::uint8_t*>(places.data()), places.size_bytes()};
}

std::optional<Announcement> decode_announcement(std::span<const std::uint8_t> message) {
  const auto job = take_asker(message);
  FixedAnnouncement fixed;
  if (!job || message.size() < sizeof(fixed)) return std::nullopt;
  std::memcpy(&fixed, message.data(), sizeof(fixed));
  message = message.subspan(sizeof(fixed));
  if (fixed.magic != kAnnouncementMagic || fixed.has_places > 1 || fixed.drops_last > 1 || fixed.is_next > 1)
    return std::nullopt;
  if (message.size() % sizeof(std::uint64_t) != 0) return std::nullopt;
  if (message.size() / sizeof(std::uint64_t) != (fixed.has_places == 1 ? fixed.length : 0)) return std::nullopt;
  const EpochOrder order{fixed.seed, fixed.length, fixed.rank, fixed.ranks, fixed.drops_last == 1, fixed.is_next == 1};
  Announcement announcement{*job, fixed.data_set, order, {}};
  announcement.places.resize(message.size() / sizeof(std::uint64_t));
  if (!message.empty()) std::memcpy(announcement.places.data(), message.data(), message.size());
  return announcement;
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
