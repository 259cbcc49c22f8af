// The workarounds for cpprestsdk 2.10 in this file, and why:
//  - Its thread pool has 40 threads by default and cannot be changed later; one is enough, as nothing blocks in it.
//  - Its timeout belongs to the client object and restarts with every piece of the body: unary calls and streams have
//    clients of their own, and this file keeps the time itself.
//  - It always trusts the system's authorities, and checks names only against the URL's host: TlsTrust replaces both.
//  - Its buffers are unbounded: ChunkHandover.
//  - It silently sends a request again, whatever the verb, when a kept connection turns out closed: a POST that must
//    not be repeated never uses a kept connection. On the other hand it gives up when writing to such a connection
//    fails: idempotent verbs are tried once more here.
//  - It reads the system's authorities anew for every connection, which costs 30 ms of CPU: all else keeps connections.
//  - It does not understand trailers, which would upset the next request: a stream's connection is never kept.
//  - It follows redirects, with credentials: switched off.
//  - It parses "[::1]" but passes the brackets on to the resolver: the URI is put together from parts.
//  - It takes TLS' server name indication from the Host header.
//  - It knows no proxy of the environment, speaks to proxies by http:// alone, and asks them for port -1 where the URL
//    has none, or for an address of IPv6 without its brackets: the port is always said, and such an address refused.
#include "src/http/cpprest_transport.h"

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <cpprest/http_client.h>
#include <openssl/ssl.h>
#include <pplx/threadpool.h>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/context.hpp>

#include "src/http/chunk_handover.h"
#include "src/http/tls_trust.h"

namespace sluice::http {
namespace {

namespace rest = web::http;

// None of cpprestsdk's continuations waits for another. A second thread would be woken for every chunk of a body, and
// each event of a watch is one. With eight threads the first list of an informer cost twice the CPU (bench-kube).
constexpr std::size_t kPoolThreads = 1;

constexpr int kHttpPort = 80;
constexpr int kHttpsPort = 443;

void start_thread_pool_once() {
  static std::once_flag once;
  std::call_once(once, [] {
    // At exit objects end in the reverse order of their beginning. The pool's threads must end before OpenSSL does,
    // which else would not free its memory for each of them.
    OPENSSL_init_ssl(0, nullptr);
    try {
      crossplat::threadpool::initialize_with_threads(kPoolThreads);
    } catch (const std::exception&) {
      // Other code used cpprestsdk before; its pool is bigger.
    }
  });
}

bool is_address(const std::string& host) {
  boost::system::error_code failed;
  boost::asio::ip::make_address(host, failed);
  return !failed;
}

bool is_idempotent(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE";
}

Error error_of(const std::exception& exception, const std::string& base_url) {
  const std::string message = base_url + ": " + exception.what();
  const auto* failure = dynamic_cast<const rest::http_exception*>(&exception);
  if (failure != nullptr && failure->error_code() == std::errc::timed_out) {
    return {ErrorCode::kDeadlineExceeded, message};
  }
  return unavailable(message);
}

Response head_of(const rest::http_response& response) {
  Response head;
  head.status = response.status_code();
  for (const auto& [name, value] : response.headers()) head.headers[name] = value;
  return head;
}

// Where the body of a response with a certain status goes.
class BodyReceiver {
 public:
  BodyReceiver(ByteSink* sink, std::size_t max_bytes) : sink_(sink), max_bytes_(max_bytes) {}

  Result<void> receive(int status, std::string_view bytes) {
    if (sink_ != nullptr && status >= 200 && status < 300) return sink_->on_bytes(bytes);
    if (bytes.size() > max_bytes_ - body_.size()) {
      return Error(ErrorCode::kResourceExhausted, "the answer is longer than " + std::to_string(max_bytes_) + " bytes");
    }
    body_.append(bytes);
    return {};
  }

  std::string take_body() { return std::move(body_); }

 private:
  ByteSink* sink_;
  std::size_t max_bytes_;
  std::string body_;
};

struct Proxy {
  web::web_proxy server;
  std::string authorization;  // of each request; empty: none, or told by `server` to a tunnel
};

class CpprestTransport final : public Transport {
 public:
  CpprestTransport(web::uri base_uri, std::optional<Proxy> proxy, std::string host_header,
                   std::shared_ptr<const TlsTrust> trust, bool indicate_name, CpprestOptions options)
      : base_uri_(std::move(base_uri)),
        proxy_(std::move(proxy)),
        base_url_(base_uri_.to_string() + (proxy_ ? " through " + proxy_->server.address().to_string() : "")),
        host_header_(std::move(host_header)),
        trust_(std::move(trust)),
        indicate_name_(indicate_name),
        options_(options),
        kept_client_(base_uri_, configuration(options.unary_idle_limit)) {}

  Result<Response> send(const Request& request, std::chrono::milliseconds timeout, std::stop_token stop) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    const Waiting waiting{deadline, std::chrono::milliseconds(0)};
    if (request.method == "POST" && !request.may_repeat) {
      rest::client::http_client fresh(base_uri_, configuration(options_.unary_idle_limit));
      return exchange(fresh, request, nullptr, waiting, stop);
    }
    auto response = exchange(kept_client_, request, nullptr, waiting, stop);
    const bool lost = !response.ok() && response.error().code() == ErrorCode::kUnavailable;
    return lost && is_idempotent(request.method) ? exchange(kept_client_, request, nullptr, waiting, stop)
                                                 : std::move(response);
  }

  Result<Response> stream(const Request& request, ByteSink& sink, std::chrono::milliseconds idle_limit,
                          std::stop_token stop) override {
    // cpprestsdk's own timer is the second line of defence, for what happens after we have left.
    rest::client::http_client fresh(base_uri_, configuration(idle_limit + std::chrono::seconds(5)));
    return exchange(fresh, request, &sink, Waiting{Exchange::Deadline::max(), idle_limit}, stop);
  }

 private:
  // Until when to wait for the next thing: a fixed time, or an idle limit that starts anew with every piece.
  struct Waiting {
    Exchange::Deadline deadline;
    std::chrono::milliseconds idle_limit;

    Exchange::Deadline next() const {
      return idle_limit.count() == 0 ? deadline : std::chrono::steady_clock::now() + idle_limit;
    }
  };

  rest::client::http_client_config configuration(std::chrono::milliseconds idle_limit) const {
    rest::client::http_client_config config;
    config.set_timeout(idle_limit);
    config.set_max_redirects(0);
    config.set_tlsext_sni_enabled(indicate_name_);
    if (proxy_) config.set_proxy(proxy_->server);
    if (trust_) {
      config.set_ssl_context_callback([trust = trust_](boost::asio::ssl::context& context) {
        if (!trust->install(context.native_handle())) throw std::runtime_error("unusable certificates");
      });
    }
    return config;
  }

  rest::http_request translate(const Request& request) const {
    rest::http_request translated(request.method);
    translated.set_request_uri(web::uri(request.target));
    if (!host_header_.empty()) translated.headers().add("Host", host_header_);
    if (proxy_ && !proxy_->authorization.empty())
      translated.headers().add("Proxy-Authorization", proxy_->authorization);
    std::string content_type = "application/octet-stream";
    for (const auto& [name, value] : request.headers) {
      if (HeaderNameLess less; !less(name, "Content-Type") && !less("Content-Type", name)) {
        content_type = value;
      } else {
        translated.headers().add(name, value);
      }
    }
    if (!request.body.empty()) translated.set_body(request.body, content_type);
    return translated;
  }

  // Starts the request and connects cpprestsdk's tasks to `state`, which they keep alive.
  void start(rest::client::http_client& client, const Request& request, const std::shared_ptr<Exchange>& state,
             const pplx::cancellation_token& cancelled) const {
    try {
      rest::http_request translated = translate(request);
      const Concurrency::streams::streambuf<std::uint8_t> handover(std::make_shared<ChunkHandover>(state));
      translated.set_response_stream(Concurrency::streams::ostream(handover));
      client.request(translated, cancelled).then([state, url = base_url_](pplx::task<rest::http_response> head) {
        try {
          rest::http_response response = head.get();
          state->on_head(head_of(response));
          response.content_ready().then([state, url](pplx::task<rest::http_response> body) {
            try {
              body.get();
              state->on_end();
            } catch (const std::exception& exception) {
              state->on_failure(error_of(exception, url));
            }
          });
        } catch (const std::exception& exception) {
          state->on_failure(error_of(exception, url));
        }
      });
    } catch (const web::uri_exception& exception) {
      state->on_failure(invalid_argument(request.target + ": " + exception.what()));
    } catch (const std::exception& exception) {
      state->on_failure(error_of(exception, base_url_));
    }
  }

  Result<Response> exchange(rest::client::http_client& client, const Request& request, ByteSink* sink, Waiting waiting,
                            std::stop_token stop) const {
    if (stop.stop_requested()) return Error(ErrorCode::kCancelled, base_url_ + ": stopped");
    auto state = std::make_shared<Exchange>();
    pplx::cancellation_token_source cancel;
    start(client, request, state, cancel.get_token());
    Result<Response> response = follow(*state, sink, waiting, stop);
    if (!response.ok()) cancel.cancel();  // closes the connection if it is still in use
    state->abandon();
    return response;
  }

  Result<Response> follow(Exchange& state, ByteSink* sink, Waiting waiting, std::stop_token stop) const {
    using Kind = Exchange::Progress::Kind;
    Response response;
    BodyReceiver receiver(sink, options_.max_body_bytes);
    for (;;) {
      Exchange::Progress progress = state.next(waiting.next(), stop);
      switch (progress.kind) {
        case Kind::kHead: response = state.head(); break;
        case Kind::kBytes: SLUICE_TRY_VOID(receiver.receive(response.status, progress.bytes)); break;
        case Kind::kPiece: {
          const auto received = receiver.receive(response.status, progress.piece->bytes());
          progress.piece->taken.set(progress.piece->size);
          if (!received.ok()) return received.error();
          break;
        }
        case Kind::kEnd: response.body = receiver.take_body(); return response;
        case Kind::kFailed: return state.failure();
        case Kind::kDeadline:
          return Error(ErrorCode::kDeadlineExceeded,
                       base_url_ + (sink ? ": silent for too long" : ": no answer in time"));
        case Kind::kStopped: return Error(ErrorCode::kCancelled, base_url_ + ": stopped");
      }
    }
  }

  const web::uri base_uri_;
  const std::optional<Proxy> proxy_;
  const std::string base_url_;     // in messages
  const std::string host_header_;  // empty: cpprestsdk's own
  const std::shared_ptr<const TlsTrust> trust_;
  const bool indicate_name_;
  const CpprestOptions options_;
  mutable rest::client::http_client kept_client_;
};

// Its user and password are not shown in messages.
Result<std::optional<Proxy>> proxy_of(const std::string& url, bool is_tunnel) {
  if (url.empty()) return std::optional<Proxy>();
  const Error unusable =
      invalid_argument("the proxy " + url.substr(url.rfind('@') + 1) + " is no http:// URL of a host and a port");
  if (!web::uri::validate(url)) return unusable;
  const web::uri parsed(url);
  if (parsed.scheme() != "http" || parsed.host().empty() || parsed.port() <= 0) return unusable;
  const auto address = web::uri_builder().set_scheme("http").set_host(parsed.host()).set_port(parsed.port()).to_uri();
  Proxy proxy{web::web_proxy(address), ""};
  const std::string user = web::uri::decode(parsed.user_info());
  const std::size_t colon = user.find(':');
  if (colon == user.npos) return std::optional(std::move(proxy));
  // cpprestsdk leaks the password each time that it reads its own credentials: a tunnel's are read once a connection.
  if (is_tunnel)
    proxy.server.set_credentials(web::credentials(user.substr(0, colon), user.substr(colon + 1)));
  else
    proxy.authorization = "Basic " + utility::conversions::to_base64({user.begin(), user.end()});
  return std::optional(std::move(proxy));
}

}  // namespace

Result<std::shared_ptr<Transport>> make_cpprest_transport(const Endpoint& endpoint, const CpprestOptions& options) {
  start_thread_pool_once();
  try {
    const web::uri parsed(endpoint.base_url);
    if (parsed.host().empty() || (parsed.scheme() != "http" && parsed.scheme() != "https")) {
      return invalid_argument("'" + endpoint.base_url + "' is no http:// or https:// URL");
    }
    if (!parsed.user_info().empty() || !parsed.query().empty() || !parsed.fragment().empty())
      return invalid_argument("the URL of " + parsed.host() +
                              " holds a user, a query or a fragment, which would not be sent; take it out");
    std::string host = parsed.host();
    std::string host_header;
    if (host.front() == '[' && host.back() == ']') {
      host_header = host + (parsed.is_port_default() ? "" : ":" + std::to_string(parsed.port()));
      host = host.substr(1, host.size() - 2);
    }
    web::uri_builder parts;
    parts.set_scheme(parsed.scheme()).set_host(host).set_path(parsed.path());
    if (parsed.port() > 0) parts.set_port(parsed.port());

    SLUICE_TRY(auto proxy, proxy_of(endpoint.proxy_url, parsed.scheme() == "https"));
    if (proxy && host.find(':') != host.npos)
      return invalid_argument(endpoint.base_url + ": an IPv6 address cannot be asked for through a proxy; give a name");
    if (proxy && parsed.port() <= 0) parts.set_port(parsed.scheme() == "https" ? kHttpsPort : kHttpPort);
    std::shared_ptr<const TlsTrust> trust;
    if (parsed.scheme() == "https") {
      SLUICE_TRY(trust, TlsTrust::create(endpoint, host));
      if (!endpoint.server_name.empty()) host_header = endpoint.server_name;
    }
    const bool indicate_name = !is_address(endpoint.server_name.empty() ? host : endpoint.server_name);
    return std::shared_ptr<Transport>(std::make_shared<CpprestTransport>(
        parts.to_uri(), std::move(proxy), std::move(host_header), std::move(trust), indicate_name, options));
  } catch (const std::exception& exception) {
    return invalid_argument("'" + endpoint.base_url + "' is no usable URL: " + exception.what());
  }
}

}  // namespace sluice::http
