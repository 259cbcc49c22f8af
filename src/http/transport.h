// The seam between Sluice and the network: everything above it (Kubernetes client, Prometheus client) is written
// against Transport and is tested with testing/scripted_transport.h. Policies are Transports around a Transport
// (see bearer_token.h); the real one is CpprestTransport.
//
// Thread safety: implementations of Transport may be called from any number of threads at once.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace sluice::http {

// Header names compare without regard to (ASCII) case.
struct HeaderNameLess {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};
using Headers = std::map<std::string, std::string, HeaderNameLess>;

struct Request {
  std::string method = "GET";
  std::string target;  // path and query, percent-encoded, starts with '/'; put behind the endpoint's own path
  Headers headers;
  std::string body;
  // A POST that does no harm when it arrives twice, such as one that names its object. Others get a connection of
  // their own, and never a second one.
  bool may_repeat = false;
};

struct Response {
  int status = 0;
  Headers headers;
  std::string body;

  bool succeeded() const { return status >= 200 && status < 300; }
};

// Where the bytes of a streamed body go.
class ByteSink {
 public:
  virtual ~ByteSink() = default;

  // Called on the thread that called Transport::stream, one call at a time. The next bytes are not read from the
  // connection before it returns: a slow sink slows the server down, nothing piles up. An error ends the stream and is
  // what stream() returns. REQUIRES: returns well within the stream's idle limit.
  virtual Result<void> on_bytes(std::string_view bytes) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // One request, one answer. Any HTTP status is an answer, not an error.
  // Errors: Unavailable (refused, no route, TLS failure, connection lost). DeadlineExceeded: no complete answer within
  // `timeout`, so the outcome is unknown. Cancelled: `stop`. ResourceExhausted: the body exceeds the transport's limit.
  virtual Result<Response> send(const Request& request, std::chrono::milliseconds timeout, std::stop_token stop) = 0;

  // One request whose body is handed to `sink` while it arrives; blocks until the body ends. A status other than 2xx
  // does not reach the sink: its body is in the response, as with send(). After a 2xx the response's body is empty.
  // Errors: as send(), with DeadlineExceeded when no byte arrived for `idle_limit`; and the sink's own.
  virtual Result<Response> stream(const Request& request, ByteSink& sink, std::chrono::milliseconds idle_limit,
                                  std::stop_token stop) = 0;
};

// Where a transport connects to, and whom it trusts. All PEM fields hold text, not file names.
struct Endpoint {
  std::string base_url;                // "https://10.0.0.1:6443", "http://[::1]:9090/prefix"
  std::string ca_pem;                  // not empty: exactly these authorities are trusted, and not the system's
  std::string client_certificate_pem;  // with client_key_pem: the client's certificate, then its chain
  std::string client_key_pem;
  std::string server_name;  // the name the server's certificate must carry; empty: the host of base_url
  std::string proxy_url;    // "http://user:password@proxy.example:3128"; empty: the server is asked directly
};

// `text` with everything but RFC 3986's unreserved characters percent-encoded: for path segments and query values.
std::string percent_encode(std::string_view text);

// The reverse, and "+" is a blank, as in queries. nullopt: a percent sign without two hex digits.
std::optional<std::string> percent_decode(std::string_view text);

}  // namespace sluice::http
