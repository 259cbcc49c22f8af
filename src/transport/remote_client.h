// The feeder's end of a stream to one worker, over gRPC (which this header does not show).
//
// Events arrive one at a time on gRPC's threads. Reading pauses until the permit that came with a message is dropped. A
// receiver that cannot place a message yet keeps it, and HTTP/2 flow control throttles the worker.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/transport/credentials.h"
#include "src/transport/payload.h"
#include "src/transport/worker.pb.h"

namespace sluice::transport {

using ReadPermit = std::shared_ptr<void>;

class RemoteClientHandler {
 public:
  virtual ~RemoteClientHandler() = default;
  virtual void received(v1::Header header, Payload payload, ReadPermit permit) = 0;
  // The last event: the worker ended the stream, or the connection is lost or never came up.
  virtual void closed(const std::string& reason) = 0;
};

// Thread safety: send() may be called from any thread.
class RemoteClient {
 public:
  // For a worker at "IP:PORT". `handler` must outlive the client.
  static std::unique_ptr<RemoteClient> create(const std::string& address, const Credentials& credentials,
                                              RemoteClientHandler& handler);

  // create() with these credentials, as a function of the rest.
  using Connect =
      std::function<std::unique_ptr<RemoteClient>(const std::string& address, RemoteClientHandler& handler)>;
  static Connect with(Credentials credentials);

  // Begins to connect and returns at once. A peer that vanishes silently is noticed within five seconds.
  // REQUIRES: called once, before send().
  virtual void start() = 0;

  // Cancels the stream and waits for its last event. Not to be called from an event.
  virtual ~RemoteClient() = default;

  // Queues a message; dropped if the stream has ended. `payload` must stay alive until `owner` is released.
  virtual void send(const v1::Header& header, std::span<const std::byte> payload = {},
                    std::shared_ptr<const void> owner = {}) = 0;
};

}  // namespace sluice::transport
