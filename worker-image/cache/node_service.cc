#include "worker-image/cache/node_service.h"

#include <utility>
#include <vector>

#include "src/cache/node_socket_line.h"

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

}  // namespace

std::shared_ptr<const void> ByteAllowance::take(std::uint64_t bytes) const {
  if (taken_->fetch_add(bytes) + bytes > bytes_max_) {
    *taken_ -= bytes;
    return nullptr;
  }
  return {taken_.get(), [taken = taken_, bytes](const void*) { *taken -= bytes; }};
}

void NodeService::received(std::shared_ptr<transport::UnaryCall> call, const std::string& method,
                           transport::Payload question) {
  if (method == cache::kFindMethod) return find(call, question);
  if (method == cache::kKeepMethod) return keep(call, std::move(question));
  if (method == cache::kAnnounceMethod) return announce(call, std::move(question));
  call->refuse(not_understood());
}

void NodeService::find(const std::shared_ptr<transport::UnaryCall>& call, const transport::Payload& message) {
  const auto bytes = bytes_of(message);
  auto question = cache_.understand(bytes);
  if (!question) return call->refuse(not_understood());
  if (auto in_memory = cache_.find_in_memory(*question)) return answer(*call, std::move(*in_memory));
  const bool is_taken =
      threads_.submit([this, call, key = std::move(question->key), tells_job = question->job.has_value()](
                          executor::ThreadState&) { answer(*call, cache_.find(key, tells_job)); });
  if (!is_taken) refuse(*call);
}

void NodeService::keep(const std::shared_ptr<transport::UnaryCall>& call, transport::Payload message) {
  auto allowed = questions_.take(message.bytes());
  if (allowed == nullptr) return refuse(*call);
  const bool is_taken =
      threads_.submit([this, call, message = std::move(message), allowed = std::move(allowed)](executor::ThreadState&) {
        const auto bytes = bytes_of(message);
        const auto question = cache_.understand(bytes);
        if (!question) return call->refuse(not_understood());
        answer(*call, cache_.keep(*question));
      });
  if (!is_taken) refuse(*call);
}

void NodeService::announce(const std::shared_ptr<transport::UnaryCall>& call, transport::Payload message) {
  auto allowed = questions_.take(message.bytes());
  if (allowed == nullptr) return refuse(*call);
  const bool is_taken =
      threads_.submit([this, call, message = std::move(message), allowed = std::move(allowed)](executor::ThreadState&) {
        auto taken = cache_.announce(bytes_of(message));
        if (!taken) return call->refuse(not_understood());
        answer(*call, std::move(*taken));
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
