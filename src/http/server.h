// A small HTTP/1.1 server for /metrics, /healthz and the like: GET and HEAD of fixed paths, nothing else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "src/base/result.h"

namespace sluice::http {

struct Page {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// The part behind the "?", decoded: "a=1&b" is {a: 1, b: ""}. Of several equal names the last counts.
using Query = std::map<std::string, std::string, std::less<>>;

// Makes a page. Called on the server's one thread, one page at a time: it must not block. What it
// throws is a page with status 500.
using PageMaker = std::function<Page(const Query&)>;

// Path ("/healthz") to its page.
using Routes = std::map<std::string, PageMaker>;

struct ServerLimits {
  std::size_t max_connections = 64;            // a further one takes the place of the one that was silent longest
  std::size_t max_request_bytes = 16u << 10;   // line and headers
  std::chrono::milliseconds read_time{10000};  // to send a request, and to keep an idle connection
  std::chrono::milliseconds write_time{10000};
};

// For a server of nothing but probes: their requests are short, and come from the kubelet of the same node.
inline constexpr ServerLimits kProbeLimits{.max_request_bytes = 4u << 10,
                                           .read_time = std::chrono::milliseconds(2000),
                                           .write_time = std::chrono::milliseconds(2000)};

// Decides on a request by its header "Sluice-Token" (empty: there is none), before its page is made. It is called as a
// PageMaker is, and may block. The page of an error has the status 401 (Unauthenticated), 403 (PermissionDenied),
// 429 (ResourceExhausted) or 503 (any other), and its message.
using Admission = std::function<Result<void>(const std::string& token)>;
inline constexpr const char* kTokenHeader = "Sluice-Token";

// Thread safety: all methods may be called from any thread; the destructor from one, last.
class Server {
 public:
  // Listens on "IP:PORT" or "[IPv6]:PORT" and serves until destroyed. Port 0 takes a free one. "[::]" is every address
  // of both families, and of IPv4 alone where the system has no IPv6. Errors: InvalidArgument for the address,
  // Unavailable when it cannot be bound (with the system's reason). Without `admission` every request is answered.
  static Result<std::unique_ptr<Server>> start(const std::string& address, Routes routes, ServerLimits limits = {},
                                               Admission admission = nullptr);

  // Closes every connection and joins the thread.
  ~Server();

  std::uint16_t port() const;

 private:
  class Implementation;
  explicit Server(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sluice::http
