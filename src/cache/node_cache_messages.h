// What a process and the cache of its node say to each other. A question is 16 bytes that tell the job, and a record
// (record.h): with its value to be kept, without one to be found. The answer is 16 bytes, and where the record was
// found, the record.
//
//   question: u32 magic, with the version of these messages; u32 0; u64 job
//   answer:   u32 magic, with the version; u32 flags: 1 found, 2 paused, 4 wanted; u64 free bytes
// An announcement tells the order of an epoch. It is the job's 16 bytes and
//
//   u32 magic, u32 1 if the places follow, u64 number of the data set, u64 seed, u64 length, u32 rank, u32 ranks,
//   u32 1 if the last samples are dropped, u32 1 if it is the epoch after this one; with the first one of a data set
//   the places, u64 each
// The answer has the flag `found` if the epoch is taken into account. If it has not, the data set is not known: it may
// be announced once more, with its places.
//
// Processes of an earlier version tell no job: their questions are records alone, and their answers have no flag that
// they do not know. A cache of an earlier version refuses questions with a job, so they are asked without one
// (node_cache_client.h).
// Numbers are little-endian. No byte of a message is trusted at either end: lengths and checksums are compared, and the
// key of an answer is the one that was asked for.
// Thread safety: pure functions and values.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "src/base/epoch_order.h"
#include "src/cache/record.h"

namespace sluice::cache {

// A record that is larger is neither kept nor given: a message is in memory whole.
inline constexpr std::uint64_t kNodeRecordBytesMax = std::uint64_t{32} << 20;
inline constexpr std::size_t kAnswerBytes = 16;
inline constexpr std::size_t kAskerBytes = 16;
inline constexpr std::size_t kNodeMessageBytesMax = kNodeRecordBytesMax + std::max(kAnswerBytes, kAskerBytes);

// Who asks: the training job. All of its processes that ask a cache have one number, and no other job has it.
using JobId = std::uint64_t;
std::array<std::uint8_t, kAskerBytes> encode_asker(JobId job);

struct Question {
  std::optional<JobId> job;
  Key key;
  std::span<const std::uint8_t> value;  // into the message
  std::uint64_t value_checksum = 0;
};

// nullopt: it is no such message, or it is damaged.
std::optional<Question> decode_question(std::span<const std::uint8_t> message);

struct Answer {
  bool is_found = false;         // the record is behind it
  bool is_paused = false;        // nothing is stored at this time
  bool is_wanted = false;        // the record that was asked for would be kept, though nothing is free
  std::uint64_t free_bytes = 0;  // that records may still take
};

std::array<std::uint8_t, kAnswerBytes> encode_answer(const Answer& answer);

// nullopt: it is no such message. REQUIRES: bytes.size() == kAnswerBytes
std::optional<Answer> decode_answer(std::span<const std::uint8_t> bytes);

struct Announcement {
  JobId job = 0;
  std::uint64_t data_set = 0;
  EpochOrder order;
  std::vector<std::uint64_t> places;  // hash_of() each, of all samples; empty: they were told before
};

// Beside the places, which travel behind it as they are in memory.
inline constexpr std::size_t kAnnouncementBytes = kAskerBytes + 48;
std::array<std::uint8_t, kAnnouncementBytes> encode_announcement(const Announcement& announcement);
std::span<const std::uint8_t> bytes_of_places(std::span<const std::uint64_t> places);

// nullopt: it is no such message.
std::optional<Announcement> decode_announcement(std::span<const std::uint8_t> message);

// Whether `head` and `value` are the undamaged record of `key`.
bool is_record_of(const Key& key, std::span<const std::uint8_t> head, std::span<const std::uint8_t> value);

}  // namespace sluice::cache
