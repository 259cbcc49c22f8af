// The other end of UnaryClient: questions and answers as bytes, on a Unix socket or the network (gRPC itself stays in
// the .cc).
//
// To a socket, only the user of this process, and root, may connect. On the network each process that reaches the port
// may, and the handler looks at the token of each call. Bounds: UnaryLimits; what is beyond them is refused before it
// is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/result.h"
#include "src/transport/credentials.h"
#include "src/transport/payload.h"

namespace sluice::transport {

struct UnaryLimits {
  std::size_t connections = 64;
  std::size_t calls = 128;  // without an answer, of all connections
  std::size_t question_bytes = 0;
};

// Several servers may count in one. Thread safety: each number may be read by any thread.
struct UnaryCounters {
  std::atomic<std::uint64_t> connections = 0;          // now
  std::atomic<std::uint64_t> refused_connections = 0;  // beyond the bound
  std::atomic<std::uint64_t> refused_users = 0;
  std::atomic<std::uint64_t> refused_calls = 0;  // beyond the bound
};

// One question. Thread safety: answer() or refuse() from any thread, one of them once.
class UnaryCall {
 public:
  virtual ~UnaryCall() = default;
  // That the client has shown with it; empty: none. REQUIRES: before answer() and refuse().
  virtual std::string token() const = 0;
  // `head` and `body`, one behind the other. The body is referred to until `owner` is released.
  virtual void answer(std::span<const std::uint8_t> head, std::span<const std::uint8_t> body,
                      std::shared_ptr<const void> owner) = 0;
  // ResourceExhausted and Unauthenticated travel as they are, every other error as InvalidArgument.
  virtual void refuse(const Error& error) = 0;
};

class UnaryHandler {
 public:
  virtual ~UnaryHandler() = default;
  // On the server's one thread: it must not wait. A call that is dropped is refused.
  virtual void received(std::shared_ptr<UnaryCall> call, const std::string& method, Payload question) = 0;
};

class UnaryServer {
 public:
  // Listens on the socket `path`, with mode 0600. REQUIRES: handler and counters outlive the server.
  // Errors: those of listen_on().
  static Result<std::unique_ptr<UnaryServer>> start(const std::string& path, const UnaryLimits& limits,
                                                    UnaryHandler& handler, UnaryCounters& counters);

  // Listens on IP:PORT with these credentials; each connection shows what their files hold when it begins. REQUIRES: as
  // above. Errors: InvalidArgument for another address; those of the system.
  static Result<std::unique_ptr<UnaryServer>> start_on_network(const std::string& address,
                                                               const Credentials& credentials,
                                                               const UnaryLimits& limits, UnaryHandler& handler,
                                                               UnaryCounters& counters);

  // On the network; 0: on a socket.
  virtual int port() const = 0;

  // Takes no more calls, waits a moment for the answers of those it has, and removes its socket.
  virtual ~UnaryServer() = default;
};

}  // namespace sluice::transport
