// One question, one answer, as bytes, over gRPC (which this header does not show) to a server on a Unix socket or on
// the network.
//
// The connection is made with the first question, and anew with the first one after it was lost. A socket's server of
// another user is not asked: a user who can make a socket at its path could give any answer. A server on the network
// is asked only if its certificate is the right one.
// Thread safety: ask() may be called from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "src/base/result.h"
#include "src/transport/payload.h"

namespace sluice::transport {

struct NetworkServer {
  std::string address;         // HOST:PORT
  std::string name;            // in its certificate
  std::string authority_file;  // PEM; read for each connection
  std::string token_file;      // its text goes with each question; read anew when the file has changed; empty: none
};

class UnaryClient {
 public:
  // Of a server at the socket `path`. Nothing is connected yet. Larger answers are an error.
  static std::unique_ptr<UnaryClient> create(std::string path, std::size_t answer_bytes_max);
  static std::unique_ptr<UnaryClient> create(NetworkServer server, std::size_t answer_bytes_max);

  virtual ~UnaryClient() = default;

  // Sends head and body, one behind the other, to the method, and waits for the answer. Errors: DeadlineExceeded after
  // `patience`; Unavailable where there is no server, it goes, or a file cannot be read; PermissionDenied for one of
  // another user; Unauthenticated for a token that it does not take; those that the server answers with.
  Result<Payload> ask(const std::string& method, std::span<const std::uint8_t> head, std::span<const std::uint8_t> body,
                      std::chrono::nanoseconds patience) {
    return ask_as("", method, head, body, patience);
  }
  // The same with another one's token, for whom this process asks. Empty: with its own.
  virtual Result<Payload> ask_as(const std::string& token, const std::string& method,
                                 std::span<const std::uint8_t> head, std::span<const std::uint8_t> body,
                                 std::chrono::nanoseconds patience) = 0;
};

}  // namespace sluice::transport
