#include "src/transport/unary_server.h"

#include <fcntl.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_posix.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "src/base/logging.h"
#include "src/transport/grpc_message.h"
#include "src/transport/local_socket.h"
#include "src/transport/network_socket.h"
#include "src/transport/server_credentials.h"

namespace sluice::transport {
namespace {

constexpr std::chrono::milliseconds kShutdownGrace{200};
constexpr int kHandshakeTimeoutMs = 5000;  // a connection that shows nothing takes another one's place
constexpr int kUnaryPingIntervalMinMs = 500;

class OpenCalls;

// One call, from before it comes until its last operation is done. gRPC does one operation of it at a time, and tells
// the server's thread of its end by the call's address.
class ServedCall final : public std::enable_shared_from_this<ServedCall> {
 public:
  ServedCall(OpenCalls& open, UnaryHandler& handler) : open_(open), handler_(handler) {}

  void wait_for_it(grpc::AsyncGenericService& service, grpc::ServerCompletionQueue& queue) {
    service.RequestCall(&context_, &stream_, &queue, &queue, this);
  }
  // It has come.
  void read() {
    step_ = Step::kReading;
    stream_.Read(&question_, this);
  }
  void refuse_unread() {
    step_ = Step::kEnding;
    end({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many questions at once"});
  }
  // Its operation has ended. False: it was the last one.
  bool go_on(bool ok);

  void answer(const grpc::ByteBuffer& bytes) {
    std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    stream_.WriteAndFinish(bytes, {}, grpc::Status::OK, this);
  }
  void end(const grpc::Status& status) {
    std::lock_guard lock(mutex_);
    if (!std::exchange(ended_, true)) stream_.Finish(status, this);
  }
  std::string token() const {
    const auto& metadata = context_.client_metadata();
    const auto found = metadata.find(kTokenHeader);
    if (found == metadata.end()) return "";
    const std::string_view header(found->second.data(), found->second.size());
    return header.starts_with(kTokenPrefix) ? std::string(header.substr(kTokenPrefix.size())) : "";
  }
  // For the end of the server: if only the handler holds it up.
  void give_up() {
    if (step_ == Step::kEnding) end({grpc::StatusCode::UNAVAILABLE, "the server ends"});
  }

 private:
  enum class Step { kComing, kReading, kEnding };

  OpenCalls& open_;
  UnaryHandler& handler_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  grpc::ByteBuffer question_;
  std::atomic<Step> step_ = Step::kComing;
  std::mutex mutex_;
  bool ended_ = false;  // its last operation has begun
};

// The calls that have come or may come, and are not done. Thread safety: all methods may be called from any thread.
class OpenCalls {
 public:
  void add(const std::shared_ptr<ServedCall>& call) {
    std::lock_guard lock(mutex_);
    calls_[call.get()] = call;
  }
  std::size_t count() {
    std::lock_guard lock(mutex_);
    return calls_.size();
  }
  void remove(ServedCall* call) {
    std::shared_ptr<ServedCall> removed;  // destroyed outside of the lock
    std::lock_guard lock(mutex_);
    const auto found = calls_.find(call);
    removed = std::move(found->second);
    calls_.erase(found);
    changed_.notify_all();
  }
  bool are_ending() {
    std::lock_guard lock(mutex_);
    return ending_;
  }
  // From here on none is given to the handler; those that it has are given up.
  void begin_end() {
    std::lock_guard lock(mutex_);
    ending_ = true;
    for (const auto& [address, call] : calls_) call->give_up();
  }
  void wait_until_done() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_.empty(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ServedCall*, std::shared_ptr<ServedCall>> calls_;
  bool ending_ = false;
};

class Call final : public UnaryCall {
 public:
  explicit Call(std::shared_ptr<ServedCall> served) : served_(std::move(served)) {}
  std::string token() const override { return served_->token(); }

  ~Call() override { served_->end({grpc::StatusCode::INTERNAL, "there was no answer"}); }

  void answer(std::span<const std::uint8_t> head, std::span<const std::uint8_t> body,
              std::shared_ptr<const void> owner) override {
    const std::array<grpc::Slice, 2> slices{grpc::Slice(head.data(), head.size()),
                                            borrowed_slice(std::as_bytes(body), std::move(owner))};
    served_->answer(grpc::ByteBuffer(slices.data(), slices.size()));
  }

  void refuse(const Error& error) override {
    const auto code = error.code() == ErrorCode::kResourceExhausted ? grpc::StatusCode::RESOURCE_EXHAUSTED
                      : error.code() == ErrorCode::kUnauthenticated ? grpc::StatusCode::UNAUTHENTICATED
                                                                    : grpc::StatusCode::INVALID_ARGUMENT;
    served_->end({code, std::string(error.message())});
  }

 private:
  const std::shared_ptr<ServedCall> served_;
};

bool ServedCall::go_on(bool ok) {
  if (step_ == Step::kEnding) return false;
  step_ = Step::kEnding;
  auto question = ok ? payload_of(question_) : Error(ErrorCode::kDataLoss, "there was no question");
  question_.Clear();
  if (!question.ok()) {
    end({grpc::StatusCode::INVALID_ARGUMENT, question.error().message()});
  } else if (open_.are_ending()) {
    end({grpc::StatusCode::UNAVAILABLE, "the server ends"});
  } else {
    handler_.received(std::make_shared<Call>(shared_from_this()), context_.method(), std::move(*question));
  }
  return true;
}

class GrpcUnaryServer final : public UnaryServer {
 public:
  GrpcUnaryServer(const UnaryLimits& limits, UnaryHandler& handler, UnaryCounters& counters)
      : limits_(limits), handler_(handler), counters_(counters) {}

  ~GrpcUnaryServer() override {
    if (accepting_.joinable()) {
      accepting_.request_stop();
      const std::uint64_t one = 1;
      (void)!::write(wake_.get(), &one, sizeof(one));
      accepting_.join();
    }
    if (!path_.empty()) ::unlink(path_.c_str());
    if (!serving_.joinable()) return;
    calls_.begin_end();
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    calls_.wait_until_done();
    queue_->Shutdown();
    serving_.join();
  }

  Result<void> listen_to_user(const std::string& path) {
    SLUICE_TRY(listener_, listen_on(path));
    path_ = path;
    grpc::ServerBuilder builder;
    return serve_with(builder);
  }

  Result<void> listen_to_network(const std::string& address, const Credentials& credentials) {
    SLUICE_TRY(listener_, listen_on_network(address));
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kUnaryPingIntervalMinMs);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    credentials_ = server_credentials(credentials, Clients::kShowNone);
    using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, credentials_);
    return serve_with(builder);
  }

  int port() const override { return port_of(listener_); }

 private:
  Result<void> serve_with(grpc::ServerBuilder& builder) {
    epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll_.valid() || !wake_.valid()) return errno_error("epoll");
    if (!watch(listener_.get(), EPOLLIN) || !watch(wake_.get(), EPOLLIN)) return errno_error("epoll");
    builder.RegisterAsyncGenericService(&service_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(limits_.question_bytes));
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kUnaryFrameBytes);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kUnaryWindowBytes);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return internal_error("the server cannot be made");
    // Waited for before there is a thread: a server that ends at once has one call to wait for, and its queue is open.
    serving_ = std::thread([this, first = wait_for_call()] { serve(first); });
    accepting_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    return {};
  }

  // One thread for all calls: with several, gRPC's threads wake one another a dozen times for each call.
  void serve(ServedCall* coming) {
    void* tag = nullptr;
    for (bool ok = false; queue_->Next(&tag, &ok);) {
      auto* const call = static_cast<ServedCall*>(tag);
      if (call != coming) {
        if (!call->go_on(ok)) calls_.remove(call);
      } else if (!ok) {  // the server takes no more
        calls_.remove(call);
      } else {
        if (calls_.count() > limits_.calls) {
          ++counters_.refused_calls;
          call->refuse_unread();
        } else {
          call->read();
        }
        coming = wait_for_call();
      }
    }
  }

  ServedCall* wait_for_call() {
    const auto call = std::make_shared<ServedCall>(calls_, handler_);
    calls_.add(call);
    call->wait_for_it(service_, *queue_);
    return call.get();
  }

  bool watch(int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::array<epoll_event, 64> events{};
      const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < count && !stop.stop_requested(); ++i) {
        if (events[i].data.fd == listener_.get()) {
          accept_all();
        } else {
          peers_.erase(events[i].data.fd);
        }
        counters_.connections += peers_.size() - std::exchange(counted_, peers_.size());  // other servers count, too
      }
    }
  }

  void accept_all() {
    while (true) {
      UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) return;
      if (acceptor_ == nullptr && !process_of_own_user(socket.get())) {
        ++counters_.refused_users;
        continue;
      }
      // gRPC owns the socket and does not tell of its end. This one is of the same connection.
      UniqueFd peer(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
      if (peers_.size() >= limits_.connections || !peer.valid() || !watch(peer.get(), EPOLLRDHUP)) {
        ++counters_.refused_connections;
        continue;
      }
      const int number = peer.get();
      peers_[number] = std::move(peer);
      hand_over(std::move(socket));
    }
  }

  // gRPC reads and writes it from here on.
  void hand_over(UniqueFd socket) {
    if (acceptor_ == nullptr) {
      grpc::AddInsecureChannelFromFd(server_.get(), socket.release());
      return;
    }
    send_at_once(socket);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listener_.get();
    connection.fd = socket.release();
    acceptor_->HandleNewConnection(&connection);
  }

  std::string path_;  // empty: on the network
  const UnaryLimits limits_;
  UnaryHandler& handler_;
  UnaryCounters& counters_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // the server asks them for every connection
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;  // null: on a socket
  OpenCalls calls_;
  UniqueFd epoll_;
  UniqueFd wake_;
  UniqueFd listener_;
  std::map<int, UniqueFd> peers_;  // by number
  std::size_t counted_ = 0;        // of them
  std::thread serving_;
  std::jthread accepting_;
};

}  // namespace

Result<std::unique_ptr<UnaryServer>> UnaryServer::start(const std::string& path, const UnaryLimits& limits,
                                                        UnaryHandler& handler, UnaryCounters& counters) {
  auto server = std::make_unique<GrpcUnaryServer>(limits, handler, counters);
  SLUICE_TRY_VOID(server->listen_to_user(path));
  return std::unique_ptr<UnaryServer>(std::move(server));
}

Result<std::unique_ptr<UnaryServer>> UnaryServer::start_on_network(const std::string& address,
                                                                   const Credentials& credentials,
                                                                   const UnaryLimits& limits, UnaryHandler& handler,
                                                                   UnaryCounters& counters) {
  auto server = std::make_unique<GrpcUnaryServer>(limits, handler, counters);
  SLUICE_TRY_VOID(server->listen_to_network(address, credentials));
  return std::unique_ptr<UnaryServer>(std::move(server));
}

}  // namespace sluice::transport
