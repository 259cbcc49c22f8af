#include "src/cache/node_socket_line.h"

#include <algorithm>

#include "src/cache/node_cache_messages.h"
#include "src/transport/unary_client.h"

namespace sluice::cache {
namespace {

class SocketLine final : public NodeCacheLine {
 public:
  explicit SocketLine(const std::string& socket)
      : client_(transport::UnaryClient::create(socket, kNodeMessageBytesMax)) {}

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

std::unique_ptr<NodeCacheLine> line_to(const std::string& socket) { return std::make_unique<SocketLine>(socket); }

}  // namespace sluice::cache
