#include "src/transport/unary_client.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <mutex>

#include "src/transport/grpc_message.h"
#include "src/transport/local_socket.h"

namespace sluice::transport {
namespace {

Result<UniqueFd> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return invalid_argument(path + " is too long for a socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error("socket");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return unavailable(errno_error("connect to " + path).message());
  if (!process_of_own_user(socket.get()))
    return Error(ErrorCode::kPermissionDenied, "the server of " + path + " is another user's");
  return socket;
}

Error error_of(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED: return {ErrorCode::kDeadlineExceeded, "no answer in time"};
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return {ErrorCode::kResourceExhausted, status.error_message()};
    case grpc::StatusCode::INVALID_ARGUMENT: return invalid_argument(status.error_message());
    case grpc::StatusCode::UNAVAILABLE: return unavailable(status.error_message());
    default: return internal_error(status.error_message());
  }
}

class GrpcUnaryClient final : public UnaryClient {
 public:
  GrpcUnaryClient(std::string path, std::size_t answer_bytes_max)
      : path_(std::move(path)), answer_bytes_max_(answer_bytes_max) {}

  Result<Payload> ask(const std::string& method, std::span<const std::uint8_t> head, std::span<const std::uint8_t> body,
                      std::chrono::nanoseconds patience) override {
    SLUICE_TRY(const std::shared_ptr<grpc::Channel> channel, connected());
    // Copies: after the deadline gRPC may still be writing.
    const std::array<grpc::Slice, 2> slices{grpc::Slice(head.data(), head.size()),
                                            grpc::Slice(body.data(), body.size())};
    const grpc::ByteBuffer question(slices.data(), slices.size());
    grpc::ByteBuffer answer;
    const grpc::Status status = call(channel, method, question, patience, answer);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) lost(channel);
    if (!status.ok()) return error_of(status);
    return payload_of(answer);
  }

 private:
  // With a queue of its own the asking thread itself waits for the socket: no other one has to wake it.
  static grpc::Status call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                           const grpc::ByteBuffer& question, std::chrono::nanoseconds patience,
                           grpc::ByteBuffer& answer) {
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    grpc::GenericStub stub(channel);
    const auto rpc = stub.PrepareUnaryCall(&context, method, question, &queue);
    grpc::Status status;
    rpc->StartCall();
    rpc->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    const bool ended = queue.Next(&tag, &ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) continue;
    return ended ? status : grpc::Status(grpc::StatusCode::INTERNAL, "the call has not ended");
  }

  Result<std::shared_ptr<grpc::Channel>> connected() {
    std::lock_guard lock(mutex_);
    if (channel_ != nullptr) return channel_;
    SLUICE_TRY(UniqueFd socket, connect_to(path_));
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(static_cast<int>(answer_bytes_max_));
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kUnaryFrameBytes);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kUnaryWindowBytes);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    channel_ = grpc::CreateCustomInsecureChannelFromFd("localhost", socket.release(), arguments);
    return channel_;
  }

  void lost(const std::shared_ptr<grpc::Channel>& channel) {
    std::lock_guard lock(mutex_);
    if (channel_ == channel) channel_ = nullptr;
  }

  const std::string path_;
  const std::size_t answer_bytes_max_;
  std::mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_;  // null: to be made
};

}  // namespace

std::unique_ptr<UnaryClient> UnaryClient::create(std::string path, std::size_t answer_bytes_max) {
  return std::make_unique<GrpcUnaryClient>(std::move(path), answer_bytes_max);
}

}  // namespace sluice::transport
