#include "src/http/server.h"

#include <algorithm>
#include <list>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/version.hpp>

#include "src/base/guarded.h"
#include "src/base/host_port.h"
#include "src/base/logging.h"
#include "src/http/transport.h"

namespace sluice::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;

constexpr auto kAcceptPause = std::chrono::milliseconds(100);  // while the process is out of file descriptors

// nullopt: a percent sign that encodes nothing.
std::optional<Query> parse_query(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const std::string_view field = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), field.size() + 1));
    if (field.empty()) continue;
    const std::size_t equals = std::min(field.size(), field.find('='));
    auto name = percent_decode(field.substr(0, equals));
    auto value = percent_decode(field.substr(std::min(field.size(), equals + 1)));
    if (!name || !value) return std::nullopt;
    query[std::move(*name)] = std::move(*value);
  }
  return query;
}

class Session;

struct Shared {
  Routes routes;
  ServerLimits limits;
  Admission admission;
  std::list<Session*> open;  // the one that was silent longest is the first
};

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnauthenticated: return 401;
    case ErrorCode::kPermissionDenied: return 403;
    case ErrorCode::kResourceExhausted: return 429;
    default: return 503;
  }
}

// One connection: read, answer, and again while the client keeps it. Lives as long as an operation is pending.
class Session final : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, std::shared_ptr<Shared> shared)
      : stream_(std::move(socket)),
        shared_(std::move(shared)),
        place_(shared_->open.insert(shared_->open.end(), this)) {}
  ~Session() { leave(); }

  // Gives the place to another connection; what is under way here fails.
  void hang_up() {
    leave();
    stream_.close();
  }

  void read() {
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_->limits.max_request_bytes));
    parser_->body_limit(0);
    stream_.expires_after(shared_->limits.read_time);
    beast::http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](beast::error_code failed, auto) {
      if (!failed) return self->answer();
      // An honest end or a silent client needs no words; anything else was no request.
      const bool malformed =
          failed.category() == beast::http::make_error_code(beast::http::error::end_of_stream).category() &&
          failed != beast::http::error::end_of_stream;
      if (malformed) self->write({400, "text/plain; charset=utf-8", failed.message() + "\n"}, 11, false, false);
    });
  }

 private:
  void leave() {
    if (place_) shared_->open.erase(*place_);
    place_.reset();
  }

  void answer() {
    if (place_) shared_->open.splice(shared_->open.end(), shared_->open, *place_);
    const auto& request = parser_->get();
    const bool is_head = request.method() == beast::http::verb::head;
    write(page_for(request), request.version(), request.keep_alive(), is_head);
  }

  Page page_for(const beast::http::request<beast::http::empty_body>& request) const {
    if (request.method() != beast::http::verb::get && request.method() != beast::http::verb::head) {
      return {405, "text/plain; charset=utf-8", "only GET and HEAD\n"};
    }
    const std::string_view target(request.target().data(), request.target().size());
    const std::size_t path_length = std::min(target.size(), target.find('?'));
    const auto route = shared_->routes.find(std::string(target.substr(0, path_length)));
    if (route == shared_->routes.end()) return {404, "text/plain; charset=utf-8", "not found\n"};
    const auto query = parse_query(target.substr(std::min(target.size(), path_length + 1)));
    if (!query) return {400, "text/plain; charset=utf-8", "a % in the query is not followed by two hex digits\n"};
    if (shared_->admission) {
      const auto header = request[kTokenHeader];
      const auto admitted = guarded(ErrorCode::kInternal, route->first,
                                    [&] { return shared_->admission(std::string(header.data(), header.size())); });
      if (!admitted.ok())
        return {status_of(admitted.error().code()), "text/plain; charset=utf-8", admitted.error().message() + "\n"};
    }
    const auto page =
        guarded(ErrorCode::kInternal, route->first, [&]() -> Result<Page> { return route->second(*query); });
    if (page.ok()) return *page;
    log_error("http", "a page has failed", {{"error", page.error().to_string()}});
    return {500, "text/plain; charset=utf-8", "this page has failed; the log says why\n"};
  }

  void write(Page page, unsigned version, bool keep_alive, bool is_head) {
    auto response = std::make_shared<beast::http::response<beast::http::string_body>>();
    response->version(version);
    response->result(static_cast<unsigned>(page.status));
    response->set(beast::http::field::content_type, page.content_type);
    response->keep_alive(keep_alive);
    response->content_length(page.body.size());
    if (page.status == 405) response->set(beast::http::field::allow, "GET, HEAD");
    if (!is_head) response->body() = std::move(page.body);
    stream_.expires_after(shared_->limits.write_time);
    beast::http::async_write(stream_, *response,
                             [self = shared_from_this(), response, keep_alive](beast::error_code failed, std::size_t) {
                               if (!failed && keep_alive) return self->read();
                               beast::error_code ignored;
                               self->stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
                             });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<beast::http::request_parser<beast::http::empty_body>> parser_;
  std::shared_ptr<Shared> shared_;
  std::optional<std::list<Session*>::iterator> place_;
};

Result<tcp::endpoint> endpoint_of(const std::string& address) {
  SLUICE_TRY(const HostPort parsed, parse_host_port(address));
  boost::system::error_code failed;
  const asio::ip::address ip = asio::ip::make_address(parsed.host, failed);
  if (failed) return invalid_argument("'" + address + "' is not IP:PORT or [IPv6]:PORT");
  return tcp::endpoint(ip, parsed.port);
}

}  // namespace

class Server::Implementation {
 public:
  Implementation(Routes routes, ServerLimits limits, Admission admission)
      : acceptor_(io_),
        pause_(io_),
        shared_(std::make_shared<Shared>(Shared{std::move(routes), limits, std::move(admission), {}})) {}

  ~Implementation() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> listen(const tcp::endpoint& endpoint, const std::string& address) {
    boost::system::error_code failed = open(endpoint);
    const bool no_ipv6 =
        failed == asio::error::address_family_not_supported || failed == boost::system::errc::address_not_available;
    if (no_ipv6 && is_every_address(endpoint)) failed = open({tcp::v4(), endpoint.port()});
    if (failed) return unavailable("listen on " + address + ": " + failed.message());
    port_ = acceptor_.local_endpoint().port();
    accept();
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  std::uint16_t port() const { return port_; }

 private:
  static bool is_every_address(const tcp::endpoint& endpoint) {
    return endpoint.address().is_v6() && endpoint.address().is_unspecified();
  }

  boost::system::error_code open(const tcp::endpoint& endpoint) {
    boost::system::error_code failed;
    if (acceptor_.is_open()) acceptor_.close(failed);
    acceptor_.open(endpoint.protocol(), failed);
    if (!failed) acceptor_.set_option(asio::socket_base::reuse_address(true), failed);
    if (!failed && is_every_address(endpoint)) acceptor_.set_option(asio::ip::v6_only(false), failed);
    if (!failed) acceptor_.bind(endpoint, failed);
    if (!failed) acceptor_.listen(asio::socket_base::max_listen_connections, failed);
    return failed;
  }

  void accept() {
    acceptor_.async_accept([this](beast::error_code failed, tcp::socket socket) {
      if (!failed) {
        // Connections that say nothing keep no other from an answer.
        if (shared_->open.size() >= shared_->limits.max_connections) shared_->open.front()->hang_up();
        std::make_shared<Session>(std::move(socket), shared_)->read();
      }
      // Out of file descriptors and the like pass; only a closed acceptor does not.
      if (failed == asio::error::operation_aborted) return;
      if (failed) return accept_later();
      accept();
    });
  }

  // The connection that was not accepted is offered again at once, for as long as it waits. Its place may be had from
  // one that says nothing.
  void accept_later() {
    if (!shared_->open.empty()) shared_->open.front()->hang_up();
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](beast::error_code) { accept(); });
  }

  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::shared_ptr<Shared> shared_;  // touched by the server's thread only, once it runs
  std::uint16_t port_ = 0;
  std::thread thread_;
};

Server::Server(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(const std::string& address, Routes routes, ServerLimits limits,
                                              Admission admission) {
  SLUICE_TRY(const tcp::endpoint endpoint, endpoint_of(address));
  auto implementation = std::make_unique<Implementation>(std::move(routes), limits, std::move(admission));
  SLUICE_TRY_VOID(implementation->listen(endpoint, address));
  return std::unique_ptr<Server>(new Server(std::move(implementation)));
}

std::uint16_t Server::port() const { return implementation_->port(); }

}  // namespace sluice::http
