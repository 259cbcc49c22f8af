// Where one job stands in its epoch, and when it is expected to use each sample next.
//
// Samples are numbers below `samples`; the jobs that share a cache number them alike. An epoch is a list of uses. A job
// may announce the list of the epoch that begins and, if its sampler has it, of the one after. Distances are counted in
// uses by this job. With `rest` uses left of an epoch of `length`, the next use of a sample is
//   announced, at a position still to come        that position less the uses made so far
//   in an epoch that was not announced, not used  rest / 2, the mean, if it was used in the epoch before
//   used in this epoch                            rest, and then length / 2, or its position if the next is announced
// as a job uses each of its samples once an epoch, in a new order. An epoch ends when it has had its uses, or when more
// than kEarlyShare of them have been of samples that it has had: these belong to the next one. Some always come early,
// as several requests are on their way at a time, and some may never come, as their files do not read. The job is
// believed about its list and about nothing else: what counts are the uses that the cache sees. So a job that claims a
// wrong position, leaves samples out or begins no epoch is answered with worse estimates, and goes on as one that
// announces nothing.
//
// Bounds: 4 bytes for each sample and announced epoch, and 4 more for each use if an epoch uses samples twice. Cost: a
// use and a question O(1), an announcement O(samples). Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "src/base/result.h"

namespace sluice::cache {

class JobOrder {
 public:
  // An order that was not announced: `length` uses in each epoch; 0, or beyond kLengthMax: not known, and learnt.
  // `members`: what it will use, if that is known. Else it may use any sample in its first epoch, none earlier than
  // what it has used already: so what an earlier job has left is neither pushed out by it, nor pushes out. REQUIRES:
  // the members are samples.
  JobOrder(std::uint32_t samples, std::uint32_t length, std::span<const std::uint32_t> members = {});

  // An epoch begins with these uses, of which the first `position` have been made before. A position beyond the end is
  // the end. InvalidArgument, and nothing has changed: an empty list, one beyond kLengthMax, a number that is no
  // sample.
  Result<void> begin_epoch(std::span<const std::uint32_t> uses, std::uint32_t position = 0);

  // The uses of the epoch after this one, which begins by itself when this one is through. Errors as above.
  Result<void> announce_next_epoch(std::span<const std::uint32_t> uses);

  void use(std::uint32_t sample);

  // Infinite: the job has no use for it. `looks_ahead`: else of a next epoch that was announced only counts which
  // samples it has, and not where.
  double distance_to(std::uint32_t sample, bool looks_ahead) const;

  // Whether it has used or announced the sample lately, or it is a member.
  bool knows(std::uint32_t sample) const;

  std::uint64_t memory_bytes() const;

  // Epochs that have begun, by an announcement or because the one before was through.
  std::uint64_t epochs() const { return epochs_; }
  bool is_announced() const { return table_.age == 0; }

  static constexpr std::uint32_t kLengthMax = std::uint32_t{1} << 31;
  static constexpr double kEarlyShare = 1.0 / 16;
  static constexpr std::size_t kEarlyLeast = 64;  // is never too many
  // A job of several nodes, or one that draws with replacement, leaves out samples in some epochs.
  static constexpr std::uint32_t kMissedEpochsMost = 4;

 private:
  static constexpr std::uint32_t kNotListed = UINT32_MAX;
  static constexpr std::uint32_t kAgeMax = kLengthMax - 3;

  // What is known of each sample, from the list of an epoch. Later epochs that are not announced are noted in it: a
  // sample that was used has kLengthMax and the age of the list then, in epochs. So no epoch needs a pass over all
  // samples, however short it is.
  struct Table {
    std::vector<std::uint32_t> next;       // of each sample: its position, or when it was used, or kNotListed
    std::vector<std::uint32_t> following;  // of each position: the next one of the same sample; empty if none has two
    std::uint32_t length = 0;
    std::uint32_t age = 0;  // 0: its list is that of this epoch
  };
  enum class State { kAtPosition, kSomewhere, kInLaterEpoch, kNever };

  static Result<Table> table_of(std::span<const std::uint32_t> uses, std::size_t samples);
  State state_of(std::uint32_t sample) const;
  bool is_used(std::uint32_t sample) const;
  bool is_through() const;
  void begin_next_epoch();
  void mark_used(std::uint32_t sample);

  Table table_;
  bool knows_length_ = true;
  bool knows_members_ = true;
  std::uint32_t cursor_ = 0;          // uses made in this epoch
  std::vector<std::uint32_t> early_;  // uses of the next one
  std::optional<Table> next_table_;
  std::uint64_t epochs_ = 0;
};

}  // namespace sluice::cache
