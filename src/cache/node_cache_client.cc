#include "src/cache/node_cache_client.h"

#include "src/base/checksum.h"
#include "src/base/logging.h"

namespace sluice::cache {
namespace {

// Of the newest measurement in the mean: some dozen questions are remembered.
constexpr double kNewest = 1.0 / 32;

}  // namespace

NodeCacheClient::NodeCacheClient(std::unique_ptr<NodeCacheLine> line, std::optional<JobId> job, const Clock& clock,
                                 Counters& counters, Clock::Duration patience)
    : line_(std::move(line)),
      job_(job),
      clock_(clock),
      counters_(counters),
      patience_(patience),
      tells_job_(job.has_value()),
      breaker_(clock) {}

bool NodeCacheClient::find(const Key& key, std::vector<std::uint8_t>& value, Clock::Duration patience) {
  if (!has_legal_lengths(key, 0)) return false;
  const auto started = clock_.now();
  const auto reply = ask(NodeCacheLine::Wish::kFind, key, {}, patience, value);
  if (!reply) return false;
  if (!reply->answer.is_found) {
    note_asking(clock_.now() - started);
    wanted_.note(key, reply->answer.is_wanted);
    return false;
  }
  const bool is_right = is_record_of(key, reply->head, value);
  if (!is_right) ++counters_.damaged;
  if (!is_measured_.exchange(true)) {  // a cache that has all there is would never tell what a question takes
    std::vector<std::uint8_t> nothing;
    static_cast<void>(find({"no file's place", ""}, nothing));
  }
  return is_right;
}

void NodeCacheClient::add(const Key& key, std::span<const std::uint8_t> value) {
  if (is_paused()) {
    ++counters_.not_stored_failed;
    return;
  }
  if (!has_room_for(key, value.size())) {
    ++counters_.not_stored_full;
    return;
  }
  std::vector<std::uint8_t> nothing;
  if (!ask(NodeCacheLine::Wish::kKeep, key, value, patience_, nothing)) ++counters_.not_stored_failed;
}

bool NodeCacheClient::has_room_for(const Key& key, std::size_t value_bytes) {
  const std::uint64_t bytes = record_bytes(key, value_bytes);
  return has_legal_lengths(key, value_bytes) && bytes <= kNodeRecordBytesMax &&
         (bytes <= free_bytes_ || wanted_.has(key)) && !is_paused();
}

bool NodeCacheClient::is_paused() { return is_paused_ || breaker_.is_open(); }

std::optional<NodeCacheClient::Reply> NodeCacheClient::ask(NodeCacheLine::Wish wish, const Key& key,
                                                           std::span<const std::uint8_t> value,
                                                           Clock::Duration patience,
                                                           std::vector<std::uint8_t>& answer_value) {
  const Breaker::Leave leave = breaker_.leave();
  if (leave == Breaker::Leave::kNone) return std::nullopt;
  std::vector<std::uint8_t> head = encode_head(key, value);
  std::vector<std::uint8_t> answer(kAnswerBytes + head.size());  // the found record's head has the same lengths
  const bool tells_job = tells_job_;
  if (tells_job) {
    const auto asker = encode_asker(*job_);
    head.insert(head.begin(), asker.begin(), asker.end());
  }
  const auto got = line_->ask(wish, head, value, patience, answer, answer_value);
  if (!got.ok()) {
    if (tells_job && got.error().code() == ErrorCode::kInvalidArgument) tells_job_ = false;
    failed(got.error(), leave);
    return std::nullopt;
  }
  const auto decoded = *got < kAnswerBytes ? std::nullopt : decode_answer(std::span(answer).first(kAnswerBytes));
  if (!decoded) {
    failed(Error(ErrorCode::kDataLoss, "the answer is none of this version"), leave);
    return std::nullopt;
  }
  answered(*decoded);
  answer.resize(*got);
  return Reply{*decoded, {answer.begin() + kAnswerBytes, answer.end()}};
}

void NodeCacheClient::announce(std::span<const std::uint64_t> places, const EpochOrder& order) {
  if (!takes_orders() || places.size() != order.length) return;
  if (places.size_bytes() > kNodeRecordBytesMax) return;
  if (breaker_.is_open()) return;
  Announcement announcement{.job = *job_, .data_set = checksum(bytes_of_places(places)), .order = order, .places = {}};
  // The places are told once. A cache that has started anew, or has forgotten them, asks for them.
  if (announce(announcement) != std::optional(false)) return;
  announcement.places.assign(places.begin(), places.end());
  static_cast<void>(announce(announcement));
}

std::optional<bool> NodeCacheClient::announce(const Announcement& announcement) {
  std::vector<std::uint8_t> nothing, answer(kAnswerBytes);
  const auto got = line_->ask(NodeCacheLine::Wish::kAnnounce, encode_announcement(announcement),
                              bytes_of_places(announcement.places), kPatienceForAnnouncements, answer, nothing);
  if (!got.ok() || *got < kAnswerBytes) return std::nullopt;
  const auto decoded = decode_answer(answer);
  return decoded ? std::optional(decoded->is_found) : std::nullopt;
}

void NodeCacheClient::answered(const Answer& answer) {
  free_bytes_ = answer.free_bytes;
  is_paused_ = answer.is_paused;
  if (breaker_.answered()) log_info("cache", "the node's cache answers again");
}

void NodeCacheClient::failed(const Error& error, Breaker::Leave leave) {
  ++node_counter_of(error.code(), counters_);
  if (breaker_.failed(leave))
    log_warning("cache", "the node's cache does not answer; the job goes on without it", {{"error", error.message()}});
}

void NodeCacheClient::note_asking(Clock::Duration took) {
  const double seconds = std::chrono::duration<double>(took).count();
  const double before = asking_seconds_;
  asking_seconds_ = before == 0 ? seconds : before + kNewest * (seconds - before);
  is_measured_ = true;
}

OpenStore node_cache_at(std::unique_ptr<NodeCacheLine> line, std::optional<JobId> job, const Clock& clock) {
  const auto held = std::make_shared<std::unique_ptr<NodeCacheLine>>(std::move(line));  // functions are copied
  return [held, job, &clock](Counters& counters, const std::stop_token&) -> Result<std::unique_ptr<RecordStore>> {
    log_info("cache", "the node's cache is asked");
    return std::unique_ptr<RecordStore>(std::make_unique<NodeCacheClient>(std::move(*held), job, clock, counters));
  };
}

}  // namespace sluice::cache
