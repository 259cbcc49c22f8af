#include "src/cache/node_socket_line.h"

#include <algorithm>

#include "src/cache/node_cache_messages.h"

namespace sluice::cache {
namespace {

class GrpcLine final : public NodeCacheLine {
 public:
  explicit GrpcLine(std::unique_ptr<transport::UnaryClient> client) : client_(std::move(client)) {}

  Result<std::size_t> ask(Wish wish, std::span<const std::uint8_t> head, std::span<const std::uint8_t> value,
                          Clock::Duration patience, std::span<std::uint8_t> answer_head,
                          std::vector<std::uint8_t>& answer_value) override {
    const char* const method =
        wish == Wish::kFind ? kFindMethod : (wish == Wish::kKeep ? kKeepMethod : kAnnounceMethod);
    SLUICE_TRY(const transport::Payload answer, client_->ask(method, head, value, patience));
    const std::size_t first = std::min(answer_head.size(), answer.bytes());
    answer.copy_to(0, answer_head.first(first));
    answer_value.resize(answer.bytes() - first);
    answer.copy_to(first, answer_value);
    return first;
  }

 private:
  const std::unique_ptr<transport::UnaryClient> client_;
};

}  // namespace

std::unique_ptr<NodeCacheLine> line_over(std::unique_ptr<transport::UnaryClient> client) {
  return std::make_unique<GrpcLine>(std::move(client));
}

std::unique_ptr<NodeCacheLine> line_to(const std::string& socket) {
  return line_over(transport::UnaryClient::create(socket, kNodeMessageBytesMax));
}

std::unique_ptr<NodeCacheLine> line_to(const std::string& address, const std::string& files) {
  return line_over(transport::UnaryClient::create(
      transport::NetworkServer{address, kNodeCacheServerName, files + "/ca.crt", files + "/token"},
      kNodeMessageBytesMax));
}

}  // namespace sluice::cache
