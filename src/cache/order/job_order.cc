#include "src/cache/order/job_order.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice::cache {

JobOrder::JobOrder(std::uint32_t samples, std::uint32_t length, std::span<const std::uint32_t> members)
    : knows_length_(length > 0 && length <= kLengthMax), knows_members_(!members.empty()) {
  // As if its members had been used in an epoch before.
  table_ = {
      .next = std::vector<std::uint32_t>(samples, kNotListed), .length = knows_length_ ? length : samples, .age = 1};
  for (const std::uint32_t member : members) table_.next[member] = kLengthMax;
}

Result<JobOrder::Table> JobOrder::table_of(std::span<const std::uint32_t> uses, std::size_t samples) {
  if (uses.empty() || uses.size() > kLengthMax)
    return invalid_argument("an epoch has 1 to " + std::to_string(kLengthMax) + " uses, and this one has " +
                            std::to_string(uses.size()));
  Table table{.next = std::vector<std::uint32_t>(samples, kNotListed),
              .length = static_cast<std::uint32_t>(uses.size())};
  for (std::size_t position = uses.size(); position-- > 0;) {
    const std::uint32_t sample = uses[position];
    if (sample >= samples)
      return invalid_argument("sample " + std::to_string(sample) + " is none of the " + std::to_string(samples));
    std::uint32_t& next = table.next[sample];
    if (next != kNotListed && table.following.empty()) table.following.assign(uses.size(), kLengthMax);
    if (next != kNotListed) table.following[position] = next;
    next = static_cast<std::uint32_t>(position);
  }
  return table;
}

Result<void> JobOrder::begin_epoch(std::span<const std::uint32_t> uses, std::uint32_t position) {
  SLUICE_TRY(table_, table_of(uses, table_.next.size()));
  next_table_.reset();
  knows_length_ = true;
  knows_members_ = true;
  early_.clear();
  cursor_ = std::min(position, table_.length);
  for (std::uint32_t made = 0; made < cursor_; ++made) mark_used(uses[made]);
  ++epochs_;
  return {};
}

Result<void> JobOrder::announce_next_epoch(std::span<const std::uint32_t> uses) {
  SLUICE_TRY(next_table_, table_of(uses, table_.next.size()));
  return {};
}

void JobOrder::use(std::uint32_t sample) {
  if (is_through()) begin_next_epoch();
  if (is_used(sample)) {
    early_.push_back(sample);
    table_.next[sample] = kLengthMax + table_.age + 1;
    return;
  }
  mark_used(sample);
  ++cursor_;
  if (!knows_length_) table_.length = std::max(table_.length, cursor_);
}

bool JobOrder::is_through() const {
  if (knows_length_ && cursor_ >= table_.length) return true;
  const double early_most = kEarlyShare * cursor_;
  return early_.size() > kEarlyLeast && static_cast<double>(early_.size()) > early_most;
}

void JobOrder::mark_used(std::uint32_t sample) {
  std::uint32_t& next = table_.next[sample];
  const bool comes_again = next < kLengthMax && table_.age == 0 && !table_.following.empty();
  next = comes_again ? table_.following[next] : kLengthMax + table_.age;
}

void JobOrder::begin_next_epoch() {
  ++epochs_;
  knows_members_ = true;
  if (!knows_length_) table_.length = cursor_;
  const std::vector<std::uint32_t> early = std::exchange(early_, {});
  cursor_ = static_cast<std::uint32_t>(early.size());
  if (next_table_) {
    table_ = std::move(*next_table_);
    next_table_.reset();
    knows_length_ = true;
    for (const std::uint32_t sample : early) mark_used(sample);
    cursor_ = std::min(cursor_, table_.length);
  } else if (++table_.age > kAgeMax) {
    *this = JobOrder(static_cast<std::uint32_t>(table_.next.size()), knows_length_ ? table_.length : 0);
  }
}

bool JobOrder::is_used(std::uint32_t sample) const {
  const std::uint32_t next = table_.next[sample];
  return next != kNotListed && next >= kLengthMax + table_.age;
}

// In an epoch that was not announced, the samples of a job are those of the epoch before.
JobOrder::State JobOrder::state_of(std::uint32_t sample) const {
  const std::uint32_t next = table_.next[sample];
  if (next == kNotListed) return State::kNever;
  if (is_used(sample)) return State::kInLaterEpoch;
  const bool is_listed = next < kLengthMax;
  if (is_listed && table_.age == 0) return State::kAtPosition;
  const std::uint32_t epochs_ago = table_.age - (is_listed ? 0 : next - kLengthMax);
  if (epochs_ago == 1) return State::kSomewhere;
  return epochs_ago <= kMissedEpochsMost ? State::kInLaterEpoch : State::kNever;
}

bool JobOrder::knows(std::uint32_t sample) const {
  return state_of(sample) != State::kNever || (next_table_ && next_table_->next[sample] != kNotListed);
}

double JobOrder::distance_to(std::uint32_t sample, bool looks_ahead) const {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const double rest = table_.length - cursor_;
  const State state = state_of(sample);
  if (state == State::kAtPosition) return std::max(table_.next[sample], cursor_) - cursor_;  // 0: it was overtaken
  if (state == State::kSomewhere) return rest / 2;
  const double mean = table_.length / 2.0;
  const bool may_come = state == State::kInLaterEpoch || !knows_members_;
  if (!next_table_) return may_come ? rest + mean : kInfinite;
  const std::uint32_t ahead = next_table_->next[sample];
  if (ahead != kNotListed) return rest + (looks_ahead ? ahead : mean);
  return may_come ? rest + next_table_->length + mean : kInfinite;
}

std::uint64_t JobOrder::memory_bytes() const {
  const auto bytes = [](const Table& table) {
    return (table.next.capacity() + table.following.capacity()) * sizeof(std::uint32_t);
  };
  return bytes(table_) + (next_table_ ? bytes(*next_table_) : 0) + early_.capacity() * sizeof(early_[0]);
}

}  // namespace sluice::cache
