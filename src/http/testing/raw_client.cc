#include "src/http/testing/raw_client.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace sluice::http::testing {

RawClient::RawClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return;
  ::close(std::exchange(socket_, -1));
}

RawClient RawClient::over_ipv6(std::uint16_t port) {
  RawClient client;
  client.socket_ = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  if (client.socket_ >= 0 &&
      ::connect(client.socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    ::close(std::exchange(client.socket_, -1));
  return client;
}

bool has_ipv6() {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool bound = socket >= 0 && ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  if (socket >= 0) ::close(socket);
  return bound;
}

RawClient::RawClient(RawClient&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}

RawClient::~RawClient() {
  if (socket_ >= 0) ::close(socket_);
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::string RawClient::read_some() {
  std::string received(4096, '\0');
  const ssize_t size = ::recv(socket_, received.data(), received.size(), 0);
  received.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return received;
}

std::string RawClient::read_all() {
  std::string all;
  for (std::string some = read_some(); !some.empty(); some = read_some()) all += some;
  return all;
}

std::string ask(std::uint16_t port, const std::string& first_line, const std::string& headers) {
  RawClient client(port);
  client.send(first_line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + "\r\n");
  return client.read_all();
}

}  // namespace sluice::http::testing
