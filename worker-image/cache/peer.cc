#include "worker-image/cache/peer.h"

#include <array>
#include <string_view>

#include "src/base/logging.h"
#include "src/cache/node_socket_line.h"

namespace sluice::node_cache {

std::optional<Peer::Reply> Peer::find(const PodQuestion& question, Clock::Duration patience) {
  const auto answered = ask(cache::kFindAtHomeMethod, question.token, question.message, {}, patience);
  if (!answered) return std::nullopt;
  const auto& [answer, whole] = *answered;
  ++counters_.finds;
  if (!answer.is_found) {
    wanted_.note(question.key, answer.is_wanted);
    return Reply{answer, nullptr};
  }
  const std::size_t record_bytes = whole.bytes() - cache::kAnswerBytes;
  std::vector<std::uint8_t> head(std::min(record_bytes, encode_head(question.asked, {}).size()));
  cache::Value value{std::vector<std::uint8_t>(record_bytes - head.size())};
  whole.copy_to(cache::kAnswerBytes, head);
  whole.copy_to(cache::kAnswerBytes + head.size(), value.bytes);
  if (!is_record_of(question.asked, head, value.bytes)) {
    ++counters_.errors.damaged;
    return std::nullopt;
  }
  value.checksum = cache::decode_head(head)->value_checksum;
  ++counters_.hits;
  counters_.hit_bytes += value.bytes.size();
  return Reply{answer, std::make_shared<const cache::Value>(std::move(value))};
}

void Peer::keep(const PodQuestion& question, Clock::Duration patience) {
  const std::uint64_t bytes = record_bytes(question.key, question.value_bytes);
  if (is_paused_ || (bytes > free_bytes_ && !wanted_.has(question.key))) return;
  if (ask(cache::kKeepAtHomeMethod, question.token, question.message, {}, patience)) ++counters_.keeps;
}

std::optional<bool> Peer::announce(const std::string& token, const cache::Announcement& announcement,
                                   Clock::Duration patience) {
  if (!takes_orders_) return std::nullopt;
  const auto answered = ask(cache::kAnnounceAtHomeMethod, token, encode_announcement(announcement),
                            cache::bytes_of_places(announcement.places), patience);
  if (!answered) return std::nullopt;
  ++counters_.announcements;
  // One that does not keep anything now knows no data set, and has no use for one.
  if (answered->answer.is_paused) return std::nullopt;
  return answered->answer.is_found;
}

std::optional<Peer::Answered> Peer::ask(const char* method, const std::string& token,
                                        std::span<const std::uint8_t> head, std::span<const std::uint8_t> body,
                                        Clock::Duration patience) {
  const cache::Breaker::Leave leave = breaker_.leave();
  if (leave == cache::Breaker::Leave::kNone) return std::nullopt;
  auto got = client_->ask_as(token, method, head, body, patience);
  if (!got.ok()) {
    const bool is_unknown_method = got.error().code() == ErrorCode::kInvalidArgument;
    if (is_unknown_method && method == std::string_view(cache::kAnnounceAtHomeMethod)) {
      takes_orders_ = false;
      breaker_.answered();
    } else {
      failed(got.error(), leave);
    }
    return std::nullopt;
  }
  std::array<std::uint8_t, cache::kAnswerBytes> first{};
  if (got->bytes() >= first.size()) got->copy_to(0, first);
  const auto answer = cache::decode_answer(first);
  if (!answer) {
    failed(Error(ErrorCode::kDataLoss, "the answer is none of this version"), leave);
    return std::nullopt;
  }
  free_bytes_ = answer->free_bytes;
  is_paused_ = answer->is_paused;
  if (breaker_.answered()) log_info("cache", "the cache of another node answers again");
  return Answered{*answer, std::move(*got)};
}

void Peer::failed(const Error& error, cache::Breaker::Leave leave) {
  ++node_counter_of(error.code(), counters_.errors);
  if (error.code() == ErrorCode::kUnauthenticated) {
    breaker_.answered();
    return;
  }
  free_bytes_ = 0;
  is_paused_ = true;
  if (breaker_.failed(leave))
    log_warning("cache", "the cache of another node does not answer; its records come from their source",
                {{"error", error.message()}});
}

}  // namespace sluice::node_cache
