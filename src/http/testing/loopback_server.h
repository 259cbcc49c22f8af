// A server on 127.0.0.1 whose every connection is handled by a function of the test. It reads requests and writes any
// bytes in any pieces, or nothing, or hangs up.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "src/http/testing/certificates.h"

namespace sluice::http::testing {

// How long a test waits for what should come at once.
inline constexpr std::chrono::seconds kPatience{20};

// One accepted connection. Thread safety: used by its handler's thread only.
class Connection {
 public:
  virtual ~Connection() = default;

  // The next request's bytes up to the end of its body (Content-Length only); nullopt when the client hung up.
  virtual std::optional<std::string> read_request() = 0;

  // Sends at once, in a segment of its own. False when the client is gone.
  virtual bool write(std::string_view bytes) = 0;

  // Sends the end of the stream, but still reads.
  virtual void half_close() = 0;

  // Stays silent until the client hangs up or the server is destroyed.
  virtual void wait_for_hang_up() = 0;

  // The common cases.
  bool answer(int status, std::string_view body, std::string_view extra_headers = "");
  bool start_chunked(int status = 200);
  bool write_chunk(std::string_view bytes);
};

struct LoopbackOptions {
  std::optional<Identity> identity;      // TLS with this certificate
  std::optional<std::string> client_ca;  // PEM; clients must show a certificate of this authority
  std::string address = "127.0.0.1";
};

// Thread safety: all methods may be called from any thread. Every connection has a thread of its own.
class LoopbackServer {
 public:
  using Handler = std::function<void(Connection&)>;

  explicit LoopbackServer(Handler handler, LoopbackOptions options = {});

  // Hangs up on every connection and joins its thread.
  ~LoopbackServer();

  std::uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:4711"
  int connections() const;  // accepted so far, including failed handshakes

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

// A port of 127.0.0.1 without a listener.
std::uint16_t unused_port();

}  // namespace sluice::http::testing
