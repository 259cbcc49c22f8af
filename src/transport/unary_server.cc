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

namespace sluice::transport {
namespace {

constexpr std::chrono::milliseconds kShutdownGrace{200};

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
  ~Call() override { served_->end({grpc::StatusCode::INTERNAL, "there was no answer"}); }

  void answer(std::span<const std::uint8_t> head, std::span<const std::uint8_t> body,
              std::shared_ptr<const void> owner) override {
    const std::array<grpc::Slice, 2> slices{grpc::Slice(head.data(), head.size()),
                                            borrowed_slice(std::as_bytes(body), std::move(owner))};
    served_->answer(grpc::ByteBuffer(slices.data(), slices.size()));
  }

  void refuse(const Error& error) override {
    const bool is_full = error.code() == ErrorCode::kResourceExhausted;
    served_->end({is_full ? grpc::StatusCode::RESOURCE_EXHAUSTED : grpc::StatusCode::INVALID_ARGUMENT,
                  std::string(error.message())});
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
  GrpcUnaryServer(std::string path, const UnaryLimits& limits, UnaryHandler& handler, UnaryCounters& counters)
      : path_(std::move(path)), limits_(limits), handler_(handler), counters_(counters) {}

  ~GrpcUnaryServer() override {
    if (accepting_.joinable()) {
      accepting_.request_stop();
      const std::uint64_t one = 1;
      (void)!::write(wake_.get(), &one, sizeof(one));
      accepting_.join();
    }
    if (listener_.valid()) ::unlink(path_.c_str());
    if (!serving_.joinable()) return;
    calls_.begin_end();
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    calls_.wait_until_done();
    queue_->Shutdown();
    serving_.join();
  }

  Result<void> listen() {
    epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll_.valid() || !wake_.valid()) return errno_error("epoll");
    SLUICE_TRY(listener_, listen_on(path_));
    if (!watch(listener_.get(), EPOLLIN) || !watch(wake_.get(), EPOLLIN)) return errno_error("epoll");
    grpc::ServerBuilder builder;
    builder.RegisterAsyncGenericService(&service_);
    builder.SetMaxReceiveMessageSize(static_cast<int>(limits_.question_bytes));
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kUnaryFrameBytes);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kUnaryWindowBytes);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return internal_error("the server cannot be made");
    serving_ = std::thread([this] { serve(); });
    accepting_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    return {};
  }

 private:
  // One thread for all calls: with several, gRPC's threads wake one another a dozen times for each call.
  void serve() {
    ServedCall* coming = wait_for_call();
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
        counters_.connections = peers_.size();
      }
    }
  }

  void accept_all() {
    while (true) {
      UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) return;
      if (!process_of_own_user(socket.get())) {
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
      grpc::AddInsecureChannelFromFd(server_.get(), socket.release());
    }
  }

  const std::string path_;
  const UnaryLimits limits_;
  UnaryHandler& handler_;
  UnaryCounters& counters_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  OpenCalls calls_;
  UniqueFd epoll_;
  UniqueFd wake_;
  UniqueFd listener_;
  std::map<int, UniqueFd> peers_;  // by number
  std::thread serving_;
  std::jthread accepting_;
};

}  // namespace

Result<std::unique_ptr<UnaryServer>> UnaryServer::start(const std::string& path, const UnaryLimits& limits,
                                                        UnaryHandler& handler, UnaryCounters& counters) {
  auto server = std::make_unique<GrpcUnaryServer>(path, limits, handler, counters);
  SLUICE_TRY_VOID(server->listen());
  return std::unique_ptr<UnaryServer>(std::move(server));
}

}  // namespace sluice::transport
