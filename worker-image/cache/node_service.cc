#include "worker-image/cache/node_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/cache/node_socket_line.h"
#include "src/cache/tenant.h"

namespace sluice::node_cache {
namespace {

std::vector<std::uint8_t> bytes_of(const transport::Payload& message) {
  std::vector<std::uint8_t> bytes(message.bytes());
  message.copy_to(0, bytes);
  return bytes;
}

std::vector<std::uint8_t> bytes_of(const cache::Answer& answer) {
  const auto bytes = encode_answer(answer);
  return {bytes.begin(), bytes.end()};
}

const Error& not_understood() {
  static const Error error = invalid_argument("this is no question of this version");
  return error;
}

// Whose the question is, and what its record is kept as.
void put_under(const Asker& asker, cache::Question& question) {
  if (question.job) question.job = cache::of_tenant(asker.name_space, *question.job);
  question.key = cache::of_tenant(asker.tenant, std::move(question.key));
}

// The client compares the key of what it gets with the one that it has asked for.
cache::NodeAnswer with_key(const cache::Key& asked, cache::NodeAnswer answer) {
  if (answer.value == nullptr) return answer;
  const auto head = encode_head(asked, answer.value->bytes.size(), answer.value->checksum);
  answer.head.resize(cache::kAnswerBytes);
  answer.head.insert(answer.head.end(), head.begin(), head.end());
  return answer;
}

}  // namespace

std::shared_ptr<const void> ByteAllowance::take(std::uint64_t bytes) const {
  if (taken_->fetch_add(bytes) + bytes > bytes_max_) {
    *taken_ -= bytes;
    return nullptr;
  }
  return {taken_.get(), [taken = taken_, bytes](const void*) { *taken -= bytes; }};
}

NodeService::NodeService(cache::NodeCache& cache, Peers* peers, Allowances allowances)
    : cache_(cache),
      peers_(peers),
      allowances_(std::move(allowances)),
      announcing_(peers == nullptr ? nullptr : std::make_unique<executor::ThreadPool>(1, 1, kAnnounceMax, 0)),
      peer_threads_(peers == nullptr
                        ? nullptr
                        : std::make_unique<executor::ThreadPool>(kPeerThreads, kPeerThreads, kQueueMax, 0)) {}

void NodeService::serve(const Asker& asker, const std::shared_ptr<transport::UnaryCall>& call,
                        const std::string& method, transport::Payload question) {
  const bool may_go_on = peers_ != nullptr && !asker.token.empty();
  if (method == cache::kFindMethod) return find({asker, call, may_go_on}, question);
  if (method == cache::kKeepMethod) return keep({asker, call, may_go_on}, std::move(question));
  if (method == cache::kFindAtHomeMethod) return find({asker, call}, question);
  if (method == cache::kKeepAtHomeMethod) return keep({asker, call}, std::move(question));
  if (method == cache::kAnnounceMethod) return announce({asker, call, may_go_on}, std::move(question));
  if (method == cache::kAnnounceAtHomeMethod) return announce({asker, call}, std::move(question));
  call->refuse(not_understood());
}

std::shared_ptr<Peer> NodeService::home_of(const Asked& asked, const cache::Key& key) const {
  return asked.may_go_on ? peers_->home_of(key) : nullptr;
}

void NodeService::find(const Asked& asked, const transport::Payload& message) {
  auto bytes = bytes_of(message);
  auto question = cache_.understand(bytes);
  if (!question) return asked.call->refuse(not_understood());
  const cache::Key key = question->key;
  put_under(asked.asker, *question);
  if (!has_legal_lengths(question->key, 0)) return asked.call->refuse(not_understood());
  if (auto home = home_of(asked, question->key))
    return find_elsewhere(asked, std::move(home), {asked.asker.token, std::move(bytes), key, std::move(question->key)});
  if (auto in_memory = cache_.find_in_memory(*question)) return answer(asked, with_key(key, std::move(*in_memory)));
  const bool is_taken =
      threads_.submit([this, asked, key, kept = std::move(question->key), tells_job = question->job.has_value()](
                          executor::ThreadState&) { answer(asked, with_key(key, cache_.find(kept, tells_job))); });
  if (!is_taken) refuse(*asked.call);
}

void NodeService::find_elsewhere(const Asked& asked, std::shared_ptr<Peer> home, PodQuestion question) {
  const bool is_taken = peer_threads_->submit([this, asked, home = std::move(home), question = std::move(question),
                                               came = peers_->now()](executor::ThreadState&) {
    if (auto here = cache_.find_of_other(question.key)) return answer(asked, with_key(question.asked, *here));
    const auto patience = peers_->patience_for(came);
    auto reply = patience.count() > 0 ? home->find(question, patience) : std::nullopt;
    if (!reply) return answer(asked, cache_.missed());
    cache::Answer found = cache_.state();
    found.is_found = reply->value != nullptr;
    found.is_wanted = reply->answer.is_wanted;
    answer(asked, with_key(question.asked, {bytes_of(found), std::move(reply->value)}));
  });
  if (is_taken) return;
  ++refused_;
  answer(asked, cache_.missed());
}

void NodeService::keep(const Asked& asked, transport::Payload message) {
  auto allowed = allowances_.questions.take(message.bytes());
  if (allowed == nullptr) return refuse(*asked.call);
  const bool is_taken = threads_.submit([this, asked, message = std::move(message),
                                         allowed = std::move(allowed)](executor::ThreadState&) {
    auto bytes = bytes_of(message);
    auto question = cache_.understand(bytes);
    if (!question) return asked.call->refuse(not_understood());
    const cache::Key key = question->key;
    put_under(asked.asker, *question);
    if (!has_legal_lengths(question->key, question->value.size())) return asked.call->refuse(not_understood());
    if (auto home = home_of(asked, question->key))
      return keep_elsewhere(asked, std::move(home),
                            {asked.asker.token, std::move(bytes), key, question->key, question->value.size()}, allowed);
    answer(asked, cache_.keep(*question));
  });
  if (!is_taken) refuse(*asked.call);
}

void NodeService::keep_elsewhere(const Asked& asked, std::shared_ptr<Peer> home, PodQuestion question,
                                 std::shared_ptr<const void> allowed) {
  const bool is_taken =
      peer_threads_->submit([this, asked, home = std::move(home), question = std::move(question),
                             allowed = std::move(allowed), came = peers_->now()](executor::ThreadState&) {
        const auto patience = peers_->patience_for(came);
        if (patience.count() > 0) home->keep(question, patience);
        answer(asked, {bytes_of(cache_.state()), nullptr});
      });
  if (is_taken) return;
  ++refused_;
  answer(asked, {bytes_of(cache_.state()), nullptr});
}

void NodeService::announce(const Asked& asked, transport::Payload message) {
  auto allowed = allowances_.questions.take(message.bytes());
  if (allowed == nullptr) return refuse(*asked.call);
  const bool is_taken = threads_.submit(
      [this, asked, message = std::move(message), allowed = std::move(allowed)](executor::ThreadState&) mutable {
        auto announcement = cache_.understand_announcement(bytes_of(message));
        if (!announcement) return asked.call->refuse(not_understood());
        tell(asked, *std::move(announcement), std::move(allowed));
      });
  if (!is_taken) refuse(*asked.call);
}

void NodeService::tell(const Asked& asked, cache::Announcement announcement, std::shared_ptr<const void> allowed) {
  const std::string& tenant = asked.asker.tenant;
  const std::string& token = asked.asker.token;
  cache::Announcement as_it_came;
  if (asked.may_go_on) as_it_came = announcement;
  // Where another daemon wants the places, the pod is asked for them.
  const bool is_wanted = asked.may_go_on && announcement.places.empty() && peers_->wants_places(announcement.data_set);
  announcement.job = cache::of_tenant(asked.asker.name_space, announcement.job);
  announcement.data_set = cache::of_tenant(tenant, announcement.data_set);
  for (std::uint64_t& place : announcement.places) place = cache::of_tenant(tenant, place);
  const auto homes = peers_ != nullptr && !token.empty() ? peers_->homes() : nullptr;
  cache::NodeAnswer taken{bytes_of(cache_.state()), nullptr};
  if (!is_wanted) taken = cache_.announce(announcement, homes.get());
  const bool is_known = cache::decode_answer(std::span(taken.head).first(cache::kAnswerBytes))->is_found;
  answer(asked, std::move(taken));
  if (!asked.may_go_on || !is_known) return;
  // The others are asked for their parts of this epoch. If too much waits, they hear of the next one.
  announcing_->submit([this, token, announcement = std::move(as_it_came), allowed = std::move(allowed)](
                          executor::ThreadState&) { peers_->announce(token, announcement); });
}

void NodeService::answer(const Asked& asked, cache::NodeAnswer answer) {
  if (asked.may_go_on) {
    const auto own = std::span(answer.head).first(cache::kAnswerBytes);
    const auto told = encode_answer(peers_->with_room_of_others(*cache::decode_answer(own)));
    std::ranges::copy(told, answer.head.begin());
  }
  if (answer.value == nullptr) return asked.call->answer(answer.head, {}, nullptr);
  const std::span<const std::uint8_t> body = answer.value->bytes;
  auto allowed = allowances_.answers.take(body.size());
  if (allowed == nullptr) return refuse(*asked.call);
  using Sent = std::pair<std::shared_ptr<const cache::Value>, std::shared_ptr<const void>>;
  asked.call->answer(answer.head, body, std::make_shared<const Sent>(std::move(answer.value), std::move(allowed)));
}

void NodeService::refuse(transport::UnaryCall& call) {
  ++refused_;
  call.refuse(Error(ErrorCode::kResourceExhausted, "the cache has too much to do"));
}

}  // namespace sluice::node_cache
