#include "src/transport/unary_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <mutex>
#include <sstream>
#include <tuple>

#include "src/transport/grpc_message.h"
#include "src/transport/local_socket.h"

namespace sluice::transport {
namespace {

// Together below the half minute after which a cache that has not answered is asked again.
constexpr int kUnaryKeepaliveTimeMs = 10000;
constexpr int kUnaryKeepaliveTimeoutMs = 5000;
constexpr std::size_t kFileBytesMax = 64 << 10;  // of authorities, or of a token

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

Result<std::string> text_of_file(const std::string& path) {
  std::string text(kFileBytesMax + 1, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  while (text.ends_with('\n')) text.pop_back();
  if (text.empty()) return unavailable(path + " cannot be read, or is empty");
  if (text.size() > kFileBytesMax) return unavailable(path + " is too long");
  return text;
}

// gRPC ends the process that gives it another text for a header.
bool is_legal_token(const std::string& token) {
  return std::ranges::all_of(token, [](char each) { return each > ' ' && each <= '~'; });
}

// The way to the server: connections, and what goes with each question. Thread safety: calls in turns.
class Way {
 public:
  virtual ~Way() = default;
  virtual Result<std::shared_ptr<grpc::Channel>> connect(grpc::ChannelArguments& arguments) = 0;
  // Empty: none.
  virtual Result<std::string> token() { return std::string(); }
};

class WayToSocket final : public Way {
 public:
  explicit WayToSocket(std::string path) : path_(std::move(path)) {}

  Result<std::shared_ptr<grpc::Channel>> connect(grpc::ChannelArguments& arguments) override {
    SLUICE_TRY(UniqueFd socket, connect_to(path_));
    return grpc::CreateCustomInsecureChannelFromFd("localhost", socket.release(), arguments);
  }

 private:
  const std::string path_;
};

class WayOverNetwork final : public Way {
 public:
  explicit WayOverNetwork(NetworkServer server) : server_(std::move(server)) {}

  // gRPC finds the address and connects while the first question waits, so that its patience counts for both.
  Result<std::shared_ptr<grpc::Channel>> connect(grpc::ChannelArguments& arguments) override {
    grpc::SslCredentialsOptions options;
    SLUICE_TRY(options.pem_root_certs, text_of_file(server_.authority_file));
    arguments.SetSslTargetNameOverride(server_.name);
    // A server whose machine is gone, or whose address is another one's by now, ends no connection.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kUnaryKeepaliveTimeMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kUnaryKeepaliveTimeoutMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("dns:///" + server_.address, grpc::SslCredentials(options), arguments);
  }

  Result<std::string> token() override {
    if (server_.token_file.empty()) return std::string();
    struct stat status {};
    if (::stat(server_.token_file.c_str(), &status) != 0)
      return unavailable(errno_error("stat " + server_.token_file).message());
    const State state{status.st_dev, status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
    if (!token_.empty() && state == read_) return token_;
    SLUICE_TRY(token_, text_of_file(server_.token_file));
    if (!is_legal_token(token_)) {
      token_.clear();
      return unavailable(server_.token_file + " holds no token");
    }
    read_ = state;
    return token_;
  }

 private:
  using State = std::tuple<dev_t, ino_t, time_t, long>;

  const NetworkServer server_;
  std::string token_;  // empty: not read
  State read_;         // the file's, when it was read
};

Error error_of(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::DEADLINE_EXCEEDED: return {ErrorCode::kDeadlineExceeded, "no answer in time"};
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return {ErrorCode::kResourceExhausted, status.error_message()};
    case grpc::StatusCode::INVALID_ARGUMENT: return invalid_argument(status.error_message());
    case grpc::StatusCode::UNAVAILABLE: return unavailable(status.error_message());
    case grpc::StatusCode::UNAUTHENTICATED: return {ErrorCode::kUnauthenticated, status.error_message()};
    default: return internal_error(status.error_message());
  }
}

class GrpcUnaryClient final : public UnaryClient {
 public:
  GrpcUnaryClient(std::unique_ptr<Way> way, std::size_t answer_bytes_max)
      : answer_bytes_max_(answer_bytes_max), way_(std::move(way)) {}

  Result<Payload> ask_as(const std::string& token, const std::string& method, std::span<const std::uint8_t> head,
                         std::span<const std::uint8_t> body, std::chrono::nanoseconds patience) override {
    if (!is_legal_token(token)) return Error(ErrorCode::kUnauthenticated, "this is no token");
    SLUICE_TRY(Connection connection, connected());
    if (!token.empty()) connection.token = token;
    // Copies: after the deadline gRPC may still be writing.
    const std::array<grpc::Slice, 2> slices{grpc::Slice(head.data(), head.size()),
                                            grpc::Slice(body.data(), body.size())};
    const grpc::ByteBuffer question(slices.data(), slices.size());
    grpc::ByteBuffer answer;
    const grpc::Status status = call(connection, method, question, patience, answer);
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) lost(connection.channel);
    if (!status.ok()) return error_of(status);
    return payload_of(answer);
  }

 private:
  struct Connection {
    std::shared_ptr<grpc::Channel> channel;
    std::string token;  // for a question; empty: none
  };

  // With a queue of its own the asking thread itself waits for the socket: no other one has to wake it.
  static grpc::Status call(const Connection& connection, const std::string& method, const grpc::ByteBuffer& question,
                           std::chrono::nanoseconds patience, grpc::ByteBuffer& answer) {
    grpc::CompletionQueue queue;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + patience);
    if (!connection.token.empty()) context.AddMetadata(kTokenHeader, std::string(kTokenPrefix) + connection.token);
    grpc::GenericStub stub(connection.channel);
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

  Result<Connection> connected() {
    std::lock_guard lock(mutex_);
    SLUICE_TRY(std::string token, way_->token());
    if (channel_ != nullptr) return Connection{channel_, std::move(token)};
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(static_cast<int>(answer_bytes_max_));
    arguments.SetMaxSendMessageSize(-1);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kUnaryFrameBytes);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kUnaryWindowBytes);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    SLUICE_TRY(channel_, way_->connect(arguments));
    return Connection{channel_, std::move(token)};
  }

  void lost(const std::shared_ptr<grpc::Channel>& channel) {
    std::lock_guard lock(mutex_);
    if (channel_ == channel) channel_ = nullptr;
  }

  const std::size_t answer_bytes_max_;
  std::mutex mutex_;
  const std::unique_ptr<Way> way_;
  std::shared_ptr<grpc::Channel> channel_;  // null: to be made
};

}  // namespace

std::unique_ptr<UnaryClient> UnaryClient::create(std::string path, std::size_t answer_bytes_max) {
  return std::make_unique<GrpcUnaryClient>(std::make_unique<WayToSocket>(std::move(path)), answer_bytes_max);
}

std::unique_ptr<UnaryClient> UnaryClient::create(NetworkServer server, std::size_t answer_bytes_max) {
  return std::make_unique<GrpcUnaryClient>(std::make_unique<WayOverNetwork>(std::move(server)), answer_bytes_max);
}

}  // namespace sluice::transport
