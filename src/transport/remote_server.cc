#include "src/transport/remote_server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <mutex>

#include "src/transport/grpc_message.h"
#include "src/transport/server_credentials.h"
#include "src/transport/thread_sanitizer.h"

namespace sluice::transport {
namespace {

constexpr int kPingIntervalMinMs = 500;  // feeders ping every two seconds
constexpr int kKeepaliveTimeMs = 10000;
constexpr int kKeepaliveTimeoutMs = 5000;
constexpr std::chrono::milliseconds kStreamShutdownGrace{200};

// Lives until gRPC's last callback; senders may keep it longer.
class StreamReactor final : public grpc::ServerGenericBidiReactor,
                            public RemoteStream,
                            public std::enable_shared_from_this<StreamReactor> {
 public:
  explicit StreamReactor(RemoteServerHandler& handler)
      : handler_(handler), writes_([this](const grpc::ByteBuffer* message) { StartWrite(message); }) {}

  void start() {
    self_ = shared_from_this();
    opened_ = true;
    handler_.opened(self_);
    read_more();
  }

  void refuse(const grpc::Status& status) {
    self_ = shared_from_this();
    end(status);
  }

  void send(const v1::Header& header, std::span<const std::byte> payload, std::shared_ptr<const void> owner) override {
    writes_.push(encode_message(header, payload, std::move(owner)));
  }

  void finish() override {
    if (writes_.close_after_sending()) end(grpc::Status::OK);
  }

  void OnReadDone(bool ok) override {
    const OrderedCallback ordered(this);
    if (!ok) return end(grpc::Status::OK);  // the feeder has said all; it does so only when it goes away
    auto message = decode_message(incoming_);
    incoming_.Clear();
    if (!message.ok()) return end({grpc::StatusCode::INVALID_ARGUMENT, message.error().message()});
    handler_.received(shared_from_this(), std::move(message->header), std::move(message->payload));
    read_more();
  }

  void OnWriteDone(bool ok) override {
    if (writes_.written(ok)) end(grpc::Status::OK);
  }

  void OnCancel() override { end(grpc::Status::CANCELLED); }

  void OnDone() override {
    const OrderedCallback ordered(this);
    const OrderedCallback handler_ordered(&handler_);
    const auto self = std::move(self_);
    if (opened_) handler_.closed(self);
  }

 private:
  void read_more() {
    std::lock_guard lock(mutex_);
    if (!ended_) StartRead(&incoming_);
  }

  void end(const grpc::Status& status) {
    writes_.abort();
    std::lock_guard lock(mutex_);
    if (!std::exchange(ended_, true)) Finish(status);
  }

  RemoteServerHandler& handler_;
  grpc::ByteBuffer incoming_;
  WriteQueue writes_;
  std::shared_ptr<StreamReactor> self_;
  bool opened_ = false;
  std::mutex mutex_;
  bool ended_ = false;
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(RemoteServerHandler& handler) : handler_(handler) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const OrderedCallback ordered(&handler_);
    auto reactor = std::make_shared<StreamReactor>(handler_);
    const OrderedCallback reactor_ordered(reactor.get());
    if (context->method() == kExecuteMethod) {
      reactor->start();
    } else {
      reactor->refuse({grpc::StatusCode::UNIMPLEMENTED, "no such method"});
    }
    return reactor.get();
  }

 private:
  RemoteServerHandler& handler_;
};

class GrpcServer final : public RemoteServer {
 public:
  explicit GrpcServer(RemoteServerHandler& handler) : service_(handler), handler_(&handler) {}

  ~GrpcServer() override {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + kStreamShutdownGrace);
    server_->Wait();
    happens_after(handler_);
  }

  Result<void> listen(const std::string& address, const Credentials& credentials) {
    grpc::ServerBuilder builder;
    credentials_ = server_credentials(credentials, Clients::kShowCertificates);
    builder.AddListeningPort(address, credentials_, &port_);
    builder.RegisterCallbackGenericService(&service_);
    builder.SetMaxReceiveMessageSize(kWorkerMessageBytesMax);
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingIntervalMinMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    // Two workers on one address would be a mistake, not load balancing.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    happens_before(handler_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0)
      return unavailable("cannot listen on " + address + ", or the TLS files are damaged");
    return {};
  }

  int port() const override { return port_; }

 private:
  Service service_;
  RemoteServerHandler* const handler_;
  int port_ = 0;
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // the server asks them for every connection
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<RemoteServer>> RemoteServer::start(const std::string& address, const Credentials& credentials,
                                                          RemoteServerHandler& handler) {
  auto server = std::make_unique<GrpcServer>(handler);
  SLUICE_TRY_VOID(server->listen(address, credentials));
  return std::unique_ptr<RemoteServer>(std::move(server));
}

}  // namespace sluice::transport
