#include "src/transport/remote_client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <condition_variable>
#include <mutex>

#include "src/transport/grpc_message.h"
#include "src/transport/thread_sanitizer.h"

namespace sluice::transport {
namespace {

// Together below the five seconds in which a vanished worker must be noticed.
constexpr int kClientKeepaliveTimeMs = 2000;
constexpr int kClientKeepaliveTimeoutMs = 2500;
constexpr int kReconnectBackoffMs = 500;
// What a worker may send ahead of what was read. gRPC's own estimate grows to the bandwidth of the memory where worker
// and feeder are on one machine: 100 MiB of buffers, most of them not in the processor's cache any more.
constexpr int kWindowBytes = 8 << 20;

std::shared_ptr<grpc::Channel> make_channel(const std::string& address, const Credentials& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kClientKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kClientKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectBackoffMs);
  // A worker is spoken to directly whatever http_proxy says, and over a connection of its own.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kFeederMessageBytesMax);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const std::string target = (address.starts_with('[') ? "ipv6:" : "ipv4:") + address;
  if (!credentials.encrypted()) return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
  arguments.SetSslTargetNameOverride(kWorkerServerName);
  grpc::SslCredentialsOptions options;
  TlsMaterial material = credentials.now();
  options.pem_root_certs = std::move(material.authority);
  options.pem_cert_chain = std::move(material.certificate);
  options.pem_private_key = std::move(material.key);
  return grpc::CreateCustomChannel(target, grpc::SslCredentials(options), arguments);
}

// A channel and the one call on it. gRPC joins the threads of its callbacks when the last channel goes, and crashes
// where it goes on one of them. So the client destroys it, not the last callback or permit.
struct Line {
  grpc::GenericStub stub;
  grpc::ClientContext context;  // shares the channel

  explicit Line(const std::shared_ptr<grpc::Channel>& channel) : stub(channel) {}
};

// Lives until gRPC's last callback; the client and every permit share it.
class WorkerCall final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                         public std::enable_shared_from_this<WorkerCall> {
 public:
  WorkerCall(const std::string& address, const Credentials& credentials, RemoteClientHandler& handler)
      : handler_(handler),
        line_(std::make_unique<Line>(make_channel(address, credentials))),
        writes_([this](const grpc::ByteBuffer* message) { StartWrite(message); }) {}

  void start() {
    self_ = shared_from_this();
    line_->stub.PrepareBidiStreamingCall(&line_->context, kExecuteMethod, {}, this);
    // Reads and writes start outside of callbacks, too: the hold keeps the call from ending between them.
    AddHold();
    StartRead(&incoming_);
    happens_before(this);
    StartCall();
  }

  void send(const grpc::ByteBuffer& message) { writes_.push(message); }

  // Ends the call. REQUIRES: it was started; not on a thread of gRPC.
  void hang_up() {
    line_->context.TryCancel();
    std::unique_lock lock(mutex_);
    cancelled_ = true;
    if (!reading_) end_locked();
    changed_.wait(lock, [&] { return done_; });
    const std::unique_ptr<Line> ended = std::move(line_);
    lock.unlock();  // a permit may come back on a thread that is being joined
  }

  void OnReadDone(bool ok) override {
    const OrderedCallback ordered(this);
    if (!ok) return end();
    auto message = decode_message(incoming_);
    incoming_.Clear();
    if (!message.ok()) {
      line_->context.TryCancel();
      return end();
    }
    {
      std::lock_guard lock(mutex_);
      reading_ = false;
    }
    handler_.received(std::move(message->header), std::move(message->payload),
                      ReadPermit(nullptr, [call = shared_from_this()](void*) { call->read_more(); }));
  }

  void OnWriteDone(bool ok) override { writes_.written(ok); }

  void OnDone(const grpc::Status& status) override {
    const OrderedCallback ordered(this);
    handler_.closed(status.ok() ? "the worker ended the stream" : status.error_message());
    const auto self = std::move(self_);
    std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }

 private:
  void read_more() {
    std::lock_guard lock(mutex_);
    if (ended_) return;
    if (cancelled_) return end_locked();
    reading_ = true;
    happens_before(this);
    StartRead(&incoming_);
  }

  void end() {
    std::lock_guard lock(mutex_);
    end_locked();
  }

  void end_locked() {
    if (std::exchange(ended_, true)) return;
    writes_.abort();
    RemoveHold();
  }

  RemoteClientHandler& handler_;
  std::unique_ptr<Line> line_;  // nullptr: hung up
  grpc::ByteBuffer incoming_;
  WriteQueue writes_;
  std::shared_ptr<WorkerCall> self_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reading_ = true;  // a read is in progress
  bool cancelled_ = false;
  bool ended_ = false;  // the hold is gone: no operation may be started
  bool done_ = false;
};

class GrpcClient final : public RemoteClient {
 public:
  explicit GrpcClient(std::shared_ptr<WorkerCall> call) : call_(std::move(call)) {}
  ~GrpcClient() override {
    if (started_) call_->hang_up();
  }

  void start() override {
    started_ = true;
    call_->start();
  }

  void send(const v1::Header& header, std::span<const std::byte> payload, std::shared_ptr<const void> owner) override {
    call_->send(encode_message(header, payload, std::move(owner)));
  }

 private:
  std::shared_ptr<WorkerCall> call_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<RemoteClient> RemoteClient::create(const std::string& address, const Credentials& credentials,
                                                   RemoteClientHandler& handler) {
  return std::make_unique<GrpcClient>(std::make_shared<WorkerCall>(address, credentials, handler));
}

RemoteClient::Connect RemoteClient::with(Credentials credentials) {
  return [credentials = std::move(credentials)](const std::string& address, RemoteClientHandler& handler) {
    return create(address, credentials, handler);
  };
}

}  // namespace sluice::transport
