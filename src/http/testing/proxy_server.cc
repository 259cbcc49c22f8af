#include "src/http/testing/proxy_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

namespace sluice::http::testing {
namespace {

constexpr int kPollMs = 20;

class Socket {
 public:
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool send_all(const Socket& to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(to.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// What is there, after a while at most. False: the other side has gone.
bool receive(const Socket& from, std::string& bytes) {
  bytes.clear();
  pollfd waiting{from.number(), POLLIN, 0};
  if (::poll(&waiting, 1, kPollMs) <= 0) return true;
  char buffer[16384];
  const ssize_t received = ::recv(from.number(), buffer, sizeof(buffer), 0);
  if (received <= 0) return false;
  bytes.assign(buffer, static_cast<std::size_t>(received));
  return true;
}

}  // namespace

class ProxyServer::Implementation {
 public:
  explicit Implementation(std::uint16_t target_port)
      : target_port_(target_port), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener_.number(), generic, length) != 0 || ::listen(listener_.number(), 16) != 0 ||
        ::getsockname(listener_.number(), generic, &length) != 0)
      throw std::runtime_error("no proxy on 127.0.0.1");
    port_ = ntohs(address.sin_port);
    accepting_ = std::jthread([this](std::stop_token stop) { accept(stop); });
  }

  std::uint16_t port() const { return port_; }
  std::vector<std::string> heads() const {
    std::lock_guard lock(mutex_);
    return heads_;
  }

 private:
  void accept(const std::stop_token& stop) {
    std::vector<std::jthread> lines;  // joined before the listener goes
    while (!stop.stop_requested()) {
      pollfd waiting{listener_.number(), POLLIN, 0};
      if (::poll(&waiting, 1, kPollMs) <= 0) continue;
      Socket client(::accept(listener_.number(), nullptr, nullptr));
      if (client.number() < 0) continue;
      lines.emplace_back([this, stop, client = std::move(client)] { serve(client, stop); });
    }
  }

  void serve(const Socket& client, const std::stop_token& stop) {
    std::string head, bytes;
    while (head.find("\r\n\r\n") == std::string::npos) {
      if (stop.stop_requested() || !receive(client, bytes)) return;
      head += bytes;
    }
    {
      std::lock_guard lock(mutex_);
      heads_.push_back(head);
    }
    const Socket server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(target_port_);
    if (::connect(server.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return;
    const bool is_tunnel = head.starts_with("CONNECT ");
    if (!(is_tunnel ? send_all(client, "HTTP/1.1 200 Connected\r\n\r\n") : send_all(server, head))) return;
    while (!stop.stop_requested())
      for (const auto& [from, to] : {std::pair(&client, &server), std::pair(&server, &client)})
        if (!receive(*from, bytes) || !send_all(*to, bytes)) return;
  }

  const std::uint16_t target_port_;
  const Socket listener_;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> heads_;
  std::jthread accepting_;  // last: it uses the others
};

ProxyServer::ProxyServer(std::uint16_t target_port) : implementation_(std::make_unique<Implementation>(target_port)) {}
ProxyServer::~ProxyServer() = default;
std::uint16_t ProxyServer::port() const { return implementation_->port(); }
std::vector<std::string> ProxyServer::heads() const { return implementation_->heads(); }

}  // namespace sluice::http::testing
