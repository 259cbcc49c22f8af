#include "worker-image/cache/node_service.h"

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

const Error& not_understood() {
  static const Error error = invalid_argument("this is no question of this version");
  return error;
}

// Whose the question is, and what its record is kept as.
void put_under(const std::string& tenant, cache::Question& question) {
  if (question.job) question.job = cache::of_tenant(tenant, *question.job);
  question.key = cache::of_tenant(tenant, std::move(question.key));
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

void NodeService::serve(const std::string& tenant, const std::shared_ptr<transport::UnaryCall>& call,
                        const std::string& method, transport::Payload question) {
  if (method == cache::kFindMethod) return find(tenant, call, question);
  if (method == cache::kKeepMethod) return keep(tenant, call, std::move(question));
  if (method == cache::kAnnounceMethod) return announce(tenant, call, std::move(question));
  call->refuse(not_understood());
}

void NodeService::find(const std::string& tenant, const std::shared_ptr<transport::UnaryCall>& call,
                       const transport::Payload& message) {
  const auto bytes = bytes_of(message);
  auto question = cache_.understand(bytes);
  if (!question) return call->refuse(not_understood());
  const cache::Key asked = question->key;
  put_under(tenant, *question);
  if (!has_legal_lengths(question->key, 0)) return call->refuse(not_understood());
  if (auto in_memory = cache_.find_in_memory(*question)) return answer(*call, with_key(asked, std::move(*in_memory)));
  const bool is_taken =
      threads_.submit([this, call, asked, key = std::move(question->key), tells_job = question->job.has_value()](
                          executor::ThreadState&) { answer(*call, with_key(asked, cache_.find(key, tells_job))); });
  if (!is_taken) refuse(*call);
}

void NodeService::keep(const std::string& tenant, const std::shared_ptr<transport::UnaryCall>& call,
                       transport::Payload message) {
  auto allowed = questions_.take(message.bytes());
  if (allowed == nullptr) return refuse(*call);
  const bool is_taken = threads_.submit(
      [this, tenant, call, message = std::move(message), allowed = std::move(allowed)](executor::ThreadState&) {
        const auto bytes = bytes_of(message);
        auto question = cache_.understand(bytes);
        if (!question) return call->refuse(not_understood());
        put_under(tenant, *question);
        if (!has_legal_lengths(question->key, question->value.size())) return call->refuse(not_understood());
        answer(*call, cache_.keep(*question));
      });
  if (!is_taken) refuse(*call);
}

void NodeService::announce(const std::string& tenant, const std::shared_ptr<transport::UnaryCall>& call,
                           transport::Payload message) {
  auto allowed = questions_.take(message.bytes());
  if (allowed == nullptr) return refuse(*call);
  const bool is_taken = threads_.submit(
      [this, tenant, call, message = std::move(message), allowed = std::move(allowed)](executor::ThreadState&) {
        auto announcement = cache_.understand_announcement(bytes_of(message));
        if (!announcement) return call->refuse(not_understood());
        announcement->job = cache::of_tenant(tenant, announcement->job);
        for (std::uint64_t& place : announcement->places) place = cache::of_tenant(tenant, place);
        answer(*call, cache_.announce(*announcement));
      });
  if (!is_taken) refuse(*call);
}

void NodeService::answer(transport::UnaryCall& call, cache::NodeAnswer answer) {
  if (answer.value == nullptr) return call.answer(answer.head, {}, nullptr);
  const std::span<const std::uint8_t> body = answer.value->bytes;
  auto allowed = answers_.take(body.size());
  if (allowed == nullptr) return refuse(call);
  using Sent = std::pair<std::shared_ptr<const cache::Value>, std::shared_ptr<const void>>;
  call.answer(answer.head, body, std::make_shared<const Sent>(std::move(answer.value), std::move(allowed)));
}

void NodeService::refuse(transport::UnaryCall& call) {
  ++refused_;
  call.refuse(Error(ErrorCode::kResourceExhausted, "the cache has too much to do"));
}

}  // namespace sluice::node_cache
