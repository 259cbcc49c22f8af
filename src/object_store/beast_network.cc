#include "src/object_store/beast_network.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/vector_body.hpp>

#include "src/base/guarded.h"
#include "src/base/logging.h"
#include "src/object_store/connections.h"

namespace sluice::object_store {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using Failed = boost::system::error_code;

constexpr std::size_t kReadBytes = 64 << 10;
constexpr std::size_t kHeadBytes = 4 << 10;  // what came of a body with its head is copied once more

// One request and its answer. Lives as long as an operation is pending.
class Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Connections& connections, HttpRequest request, Network::Done done)
      : connections_(connections),
        body_(std::move(request.room)),
        request_(std::move(request)),
        done_(std::move(done)),
        key_(request_.target.is_tls, request_.target.authority, request_.trust),
        resolver_(connections.io()),
        timer_(connections.io()),
        deadline_(std::chrono::steady_clock::now() + request_.time) {}

  void start() {
    note_progress();
    watch();
    connection_ = connections_.take(key_);
    is_reused_ = connection_ != nullptr;
    if (is_reused_) return send();
    connect();
  }

  void cancel() {
    done_ = nullptr;
    release();
  }

 private:
  void note_progress() { progress_at_ = std::chrono::steady_clock::now(); }

  // One timer for all operations: re-arming it for each of them would cost more than the read.
  void watch() {
    timer_.expires_after(std::min<Clock::Duration>(connections_.options().silence / 4, std::chrono::seconds(1)));
    timer_.async_wait([self = shared_from_this()](Failed cancelled) {
      if (cancelled || self->done_ == nullptr) return;
      const auto now = std::chrono::steady_clock::now();
      const bool is_silent = now - self->progress_at_ > self->connections_.options().silence;
      if (!is_silent && now < self->deadline_) return self->watch();
      self->fail(is_silent ? "no answer in time" : "a body that takes too long");
    });
  }

  void connect() {
    connection_ = connections_.open(key_);
    resolver_.async_resolve(request_.target.host(), request_.target.port(),
                            [self = shared_from_this()](Failed failed, const tcp::resolver::results_type& found) {
                              if (failed) return self->fail("its name cannot be resolved");
                              if (self->done_ == nullptr) return;
                              asio::async_connect(self->connection_->socket, found,
                                                  [self](Failed refused, const auto&) {
                                                    if (refused)
                                                      return self->fail("no connection: " + refused.message());
                                                    self->connected();
                                                  });
                            });
  }

  void connected() {
    if (done_ == nullptr) return;
    note_progress();
    Failed ignored;
    connection_->socket.set_option(tcp::no_delay(true), ignored);
    if (!connection_->tls) return send();
    const std::string host = request_.target.host();
    Failed is_no_address;
    asio::ip::make_address(host, is_no_address);
    if (is_no_address) SSL_set_tlsext_host_name(connection_->tls->native_handle(), host.c_str());
    connection_->tls->set_verify_callback(asio::ssl::host_name_verification(host), ignored);
    connection_->tls->async_handshake(asio::ssl::stream_base::client, [self = shared_from_this()](Failed failed) {
      if (failed) return self->fail("no TLS: " + failed.message());
      self->note_progress();
      self->send();
    });
  }

  void send() {
    if (done_ == nullptr) return;
    text_ = request_.method + " " + request_.target.path + " HTTP/1.1\r\n";
    for (const auto& [name, value] : request_.headers) text_ += name + ": " + value + "\r\n";
    if (!request_.body.empty()) text_ += "Content-Length: " + std::to_string(request_.body.size()) + "\r\n";
    text_ += "\r\n" + request_.body;
    parser_.emplace();
    parser_->body_limit(request_.answer_bytes_max);
    buffer_.clear();
    has_answer_ = is_body_parsed_ = false;
    body_bytes_ = 0;
    connection_->with([&](auto& stream) {
      asio::async_write(stream, asio::buffer(text_), [self = shared_from_this()](Failed failed, std::size_t) {
        if (failed) return self->lost(failed);
        self->note_progress();
        self->read();
      });
    });
  }

  void read() {
    if (done_ == nullptr) return;
    connection_->with([&](auto& stream) {
      stream.async_read_some(buffer_.prepare(is_body_parsed_ ? kReadBytes : kHeadBytes),
                             [self = shared_from_this()](Failed failed, std::size_t bytes) {
                               if (self->done_ == nullptr) return;
                               self->note_progress();
                               if (bytes > 0) self->has_answer_ = true;
                               self->buffer_.commit(bytes);
                               if (failed) return self->ended(failed);
                               self->parse();
                             });
    });
  }

  void parse() {
    const auto needs_more = [&] { return is_body_parsed_ ? !parser_->is_done() : !parser_->is_header_done(); };
    while (buffer_.size() > 0 && needs_more()) {
      Failed failed;
      const std::size_t used = parser_->put(buffer_.data(), failed);
      buffer_.consume(used);
      if (failed == beast::http::error::need_more) break;
      if (failed == beast::http::error::body_limit) return finish(/*is_cut_off=*/true);
      if (failed) return fail("no answer of HTTP: " + failed.message());
    }
    if (needs_more()) return read();
    if (parser_->is_done()) return finish(false);
    begin_body();
  }

  // One of a known length is read into its place: most of an answer's cost would be its copies.
  void begin_body() {
    const auto length = parser_->content_length();
    if (!length || parser_->chunked()) {
      is_body_parsed_ = true;
      parser_->eager(true);
      return parse();
    }
    if (body_.capacity() < *length) body_ = {};  // what it holds is worth no copy
    body_.resize(*length);                       // within the parser's limit
    body_bytes_ = std::min(body_.size(), buffer_.size());
    std::memcpy(body_.data(), buffer_.data().data(), body_bytes_);
    buffer_.consume(body_bytes_);
    read_body();
  }

  void read_body() {
    if (done_ == nullptr) return;
    if (body_bytes_ == body_.size()) return finish(false);
    connection_->with([&](auto& stream) {
      const auto rest = asio::buffer(body_.data() + body_bytes_, body_.size() - body_bytes_);
      stream.async_read_some(rest, [self = shared_from_this()](Failed failed, std::size_t bytes) {
        if (self->done_ == nullptr) return;
        self->note_progress();
        self->body_bytes_ += bytes;
        if (failed && self->body_bytes_ < self->body_.size()) return self->fail("a body that is cut off");
        self->read_body();
      });
    });
  }

  // The other side has ended the connection, which ends a body without a length.
  void ended(Failed failed) {
    Failed refused;
    const bool is_end = failed == asio::error::eof || failed == asio::ssl::error::stream_truncated;
    if (is_end && has_answer_ && parser_->is_header_done()) {
      parser_->put_eof(refused);
      if (!refused) return finish(false);
      return fail("a body that is cut off");
    }
    lost(failed);
  }

  // A connection that was kept may have been closed before this request. Nothing of an answer has come then.
  void lost(Failed failed) {
    if (done_ == nullptr) return;
    if (!is_reused_ || has_answer_) return fail("the connection is lost: " + failed.message());
    is_reused_ = false;
    close();
    connect();
  }

  void finish(bool is_cut_off) {
    const auto& message = parser_->get();
    HttpAnswer answer{.status = static_cast<int>(message.result_int()), .reason = std::string(message.reason())};
    for (const auto& field : message)
      answer.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    answer.is_cut_off = is_cut_off;
    if (!is_cut_off && parser_->keep_alive() && buffer_.size() == 0) connections_.keep(key_, std::move(connection_));
    body_.resize(body_bytes_);
    answer.body = is_body_parsed_ ? std::move(parser_->get().body()) : std::move(body_);
    end(std::move(answer));
  }

  void fail(const std::string& reason) { end(unavailable(reason)); }

  void end(Result<HttpAnswer> result) {
    if (done_ == nullptr) return;
    const Network::Done done = std::exchange(done_, nullptr);
    release();
    done(std::move(result));
  }

  void release() {
    timer_.cancel();
    resolver_.cancel();
    close();
  }

  void close() {
    if (connection_ == nullptr) return;
    Failed ignored;
    connection_->socket.close(ignored);  // an operation that is pending ends; `connection_` lives as long
  }

  Connections& connections_;
  std::vector<std::uint8_t> body_;  // where its length is known
  const HttpRequest request_;
  Network::Done done_;  // null: it has been called
  const Connections::Key key_;
  tcp::resolver resolver_;
  asio::steady_timer timer_;
  const Clock::TimePoint deadline_;
  Clock::TimePoint progress_at_{};
  std::unique_ptr<Connection> connection_;
  bool is_reused_ = false;
  bool has_answer_ = false;  // some bytes of one
  std::string text_;
  beast::flat_buffer buffer_;
  std::optional<beast::http::response_parser<beast::http::vector_body<std::uint8_t>>> parser_;
  bool is_body_parsed_ = false;  // by the parser, as its length is not known
  std::size_t body_bytes_ = 0;   // that have come
};

class BeastNetwork final : public Network {
 public:
  explicit BeastNetwork(const BeastOptions& options) : running_(std::make_unique<Running>(options)) {}
  ~BeastNetwork() override { end(); }

  Cancel ask(HttpRequest request, Done done) override {
    const auto exchange = std::make_shared<Exchange>(running_->connections, std::move(request), std::move(done));
    exchange->start();
    return [under_way = std::weak_ptr<Exchange>(exchange)] {
      if (const auto cancelled = under_way.lock()) cancelled->cancel();
    };
  }

  void after(Clock::Duration wait, std::function<void()> then) override {
    auto timer = std::make_shared<asio::steady_timer>(running_->io, wait);
    timer->async_wait([timer, then = std::move(then)](Failed cancelled) {
      if (!cancelled) then();
    });
  }

  void post(std::function<void()> work) override {
    std::lock_guard lock(mutex_);
    if (!has_ended_) asio::post(running_->io, std::move(work));
  }

  void end() override {
    {
      std::lock_guard lock(mutex_);
      if (std::exchange(has_ended_, true)) return;
    }
    running_->stop();
    running_.reset();  // and with it all that is under way
  }

 private:
  struct Running {
    explicit Running(const BeastOptions& options)
        : connections(io, options), work(io.get_executor()), thread([this] { run(); }) {}

    void run() {
      while (!io.stopped()) {
        const auto ran = guarded(ErrorCode::kInternal, "the network", [this] { io.run(); });
        if (!ran.ok()) log_error("object_store", "an exchange has failed", {{"error", ran.error().message()}});
      }
    }

    void stop() {
      io.stop();
      thread.join();
    }

    asio::io_context io{1};
    Connections connections;
    asio::executor_work_guard<asio::io_context::executor_type> work;
    std::thread thread;  // last: it uses the rest
  };

  std::mutex mutex_;
  bool has_ended_ = false;
  std::unique_ptr<Running> running_;  // until the end
};

}  // namespace

std::unique_ptr<Network> make_beast_network(BeastOptions options) { return std::make_unique<BeastNetwork>(options); }

}  // namespace sluice::object_store
