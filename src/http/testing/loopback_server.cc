#include "src/http/testing/loopback_server.h"

#include <atomic>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>

namespace sluice::http::testing {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

std::size_t content_length(std::string_view head) {
  constexpr std::string_view kName = "content-length:";
  for (std::size_t at = 0; at + kName.size() < head.size(); ++at) {
    const bool matches = std::equal(kName.begin(), kName.end(), head.begin() + static_cast<std::ptrdiff_t>(at),
                                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
    if (matches) return std::stoul(std::string(head.substr(at + kName.size(), 20)));
  }
  return 0;
}

template <typename Stream>
class StreamConnection final : public Connection {
 public:
  StreamConnection(Stream& stream, tcp::socket& socket) : stream_(stream), socket_(socket) {}

  std::optional<std::string> read_request() override {
    boost::system::error_code failed;
    const std::size_t head = asio::read_until(stream_, asio::dynamic_buffer(received_), "\r\n\r\n", failed);
    if (failed) return std::nullopt;
    const std::size_t size = head + content_length(std::string_view(received_).substr(0, head));
    if (received_.size() < size) {
      asio::read(stream_, asio::dynamic_buffer(received_), asio::transfer_exactly(size - received_.size()), failed);
    }
    if (failed) return std::nullopt;
    std::string request = received_.substr(0, size);
    received_.erase(0, size);
    return request;
  }

  bool write(std::string_view bytes) override {
    boost::system::error_code failed;
    asio::write(stream_, asio::buffer(bytes.data(), bytes.size()), failed);
    return !failed;
  }

  void half_close() override {
    boost::system::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }

  void wait_for_hang_up() override {
    boost::system::error_code failed;
    char byte = 0;
    while (!failed) asio::read(stream_, asio::buffer(&byte, 1), failed);
  }

 private:
  Stream& stream_;
  tcp::socket& socket_;
  std::string received_;
};

}  // namespace

bool Connection::answer(int status, std::string_view body, std::string_view extra_headers) {
  return write("HTTP/1.1 " + std::to_string(status) + " Status\r\nContent-Length: " + std::to_string(body.size()) +
               "\r\n" + std::string(extra_headers) + "\r\n" + std::string(body));
}

bool Connection::start_chunked(int status) {
  return write("HTTP/1.1 " + std::to_string(status) + " Status\r\nTransfer-Encoding: chunked\r\n\r\n");
}

bool Connection::write_chunk(std::string_view bytes) {
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  return write(size + std::string(bytes) + "\r\n");
}

class LoopbackServer::Implementation {
 public:
  Implementation(Handler handler, LoopbackOptions options)
      : handler_(std::move(handler)),
        options_(std::move(options)),
        tls_(asio::ssl::context::tls_server),
        acceptor_(io_, tcp::endpoint(asio::ip::make_address(options_.address), 0)) {
    if (options_.identity) {
      tls_.use_certificate_chain(asio::buffer(options_.identity->certificate_pem));
      tls_.use_private_key(asio::buffer(options_.identity->key_pem), asio::ssl::context::pem);
    }
    if (options_.client_ca) {
      tls_.add_certificate_authority(asio::buffer(*options_.client_ca));
      tls_.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
    }
    port_ = acceptor_.local_endpoint().port();
    thread_ = std::thread([this] { accept(); });
  }

  ~Implementation() {
    stopping_ = true;
    {
      // A blocking accept() is not woken by closing its socket: connect to it.
      boost::system::error_code ignored;
      tcp::socket waker(io_);
      waker.connect(tcp::endpoint(asio::ip::make_address(options_.address), port_), ignored);
    }
    thread_.join();
    std::lock_guard lock(mutex_);
    for (auto& connection : connections_) ::shutdown(connection.handle, SHUT_RDWR);
    for (auto& connection : connections_) connection.thread.join();
    for (auto& connection : connections_) ::close(connection.handle);
  }

  std::uint16_t port() const { return port_; }
  int connections() const { return accepted_; }
  std::string url() const {
    const bool is_v6 = options_.address.find(':') != std::string::npos;
    return (options_.identity ? "https://" : "http://") + (is_v6 ? "[" + options_.address + "]" : options_.address) +
           ":" + std::to_string(port_);
  }

 private:
  // The handle is a duplicate that stays valid, so that the destructor can shut the connection down at any time.
  struct Running {
    int handle;
    std::thread thread;
  };

  void accept() {
    for (;;) {
      boost::system::error_code failed;
      auto socket = std::make_shared<tcp::socket>(io_);
      acceptor_.accept(*socket, failed);
      if (failed || stopping_) return;
      ++accepted_;
      socket->set_option(tcp::no_delay(true));
      const int handle = ::dup(socket->native_handle());
      std::lock_guard lock(mutex_);
      connections_.push_back({handle, std::thread([this, socket] { serve(*socket); })});
    }
  }

  void serve(tcp::socket& socket) {
    boost::system::error_code failed;
    if (options_.identity) {
      asio::ssl::stream<tcp::socket&> stream(socket, tls_);
      stream.handshake(asio::ssl::stream_base::server, failed);
      if (!failed) {
        StreamConnection connection(stream, socket);
        handler_(connection);
      }
    } else {
      StreamConnection connection(socket, socket);
      handler_(connection);
    }
    socket.shutdown(tcp::socket::shutdown_both, failed);
    socket.close(failed);
  }

  Handler handler_;
  LoopbackOptions options_;
  asio::io_context io_;
  asio::ssl::context tls_;
  tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> accepted_ = 0;
  std::mutex mutex_;
  std::list<Running> connections_;
  std::thread thread_;
};

LoopbackServer::LoopbackServer(Handler handler, LoopbackOptions options)
    : implementation_(std::make_unique<Implementation>(std::move(handler), std::move(options))) {}
LoopbackServer::~LoopbackServer() = default;

std::uint16_t LoopbackServer::port() const { return implementation_->port(); }
std::string LoopbackServer::url() const { return implementation_->url(); }
int LoopbackServer::connections() const { return implementation_->connections(); }

std::uint16_t unused_port() {
  asio::io_context io;
  tcp::acceptor acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  return acceptor.local_endpoint().port();
}

}  // namespace sluice::http::testing
