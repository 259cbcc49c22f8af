// The worker's end: a gRPC server with the one streaming method of section 7 (gRPC itself stays in the .cc).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "src/base/result.h"
#include "src/transport/credentials.h"
#include "src/transport/payload.h"
#include "src/transport/worker.pb.h"

namespace sluice::transport {

// One feeder. Thread safety: all methods may be called from any thread.
class RemoteStream {
 public:
  virtual ~RemoteStream() = default;

  // Queues a message; dropped if the stream has ended. `owner` is released when gRPC has sent the payload: it is
  // referred to, never copied. The queue is bounded by the owners that the caller hands over (arena slots).
  virtual void send(const v1::Header& header, std::span<const std::byte> payload = {},
                    std::shared_ptr<const void> owner = {}) = 0;

  // Ends the stream once everything queued has been sent.
  virtual void finish() = 0;
};

// Events of one stream arrive one at a time; different streams' at the same time.
class RemoteServerHandler {
 public:
  virtual ~RemoteServerHandler() = default;
  virtual void opened(std::shared_ptr<RemoteStream> stream) = 0;
  virtual void received(const std::shared_ptr<RemoteStream>& stream, v1::Header header, Payload payload) = 0;
  virtual void closed(const std::shared_ptr<RemoteStream>& stream) = 0;
};

class RemoteServer {
 public:
  // Listens on "IP:PORT" (port 0: any free one). `handler` must outlive the server.
  // Errors: Unavailable if the address cannot be bound.
  static Result<std::unique_ptr<RemoteServer>> start(const std::string& address, const Credentials& credentials,
                                                     RemoteServerHandler& handler);

  // Ends every stream and waits for their last events.
  virtual ~RemoteServer() = default;

  virtual int port() const = 0;
};

}  // namespace sluice::transport
