#include "src/transport/network_socket.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

namespace sluice::transport {
namespace {

constexpr int kNetworkBacklog = 64;

struct NetworkAddress {
  sockaddr_storage bytes{};
  socklen_t length = 0;
};

std::optional<NetworkAddress> parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || rest != end) return std::nullopt;
  std::string host = text.substr(0, colon);
  NetworkAddress address;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    if (::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) != 1) return std::nullopt;
    address.length = sizeof(six);
    std::memcpy(&address.bytes, &six, sizeof(six));
    return address;
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &four.sin_addr) != 1) return std::nullopt;
  address.length = sizeof(four);
  std::memcpy(&address.bytes, &four, sizeof(four));
  return address;
}

constexpr const char* kEveryAddress = "[::]:";

// Invalid, with errno, if the address cannot be bound.
UniqueFd bound_to(const NetworkAddress& address, bool both_families) {
  UniqueFd listener(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return listener;
  const int on = 1;  // a server that follows another one finds its connections' ends still there
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const int v6_only = 0;
  if (both_families) ::setsockopt(listener.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.length) == 0) return listener;
  const int failure = errno;
  listener = UniqueFd();
  errno = failure;
  return listener;
}

}  // namespace

Result<UniqueFd> listen_on_network(const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed) return invalid_argument("'" + address + "' is not IP:PORT");
  const bool every_address = address.starts_with(kEveryAddress);
  UniqueFd listener = bound_to(*parsed, every_address);
  const bool no_ipv6 = !listener.valid() && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL);
  if (no_ipv6 && every_address)
    listener = bound_to(*parse_address("0.0.0.0:" + address.substr(std::strlen(kEveryAddress))), false);
  if (!listener.valid()) return errno_error("bind " + address);
  if (::listen(listener.get(), kNetworkBacklog) != 0) return errno_error("listen on " + address);
  return listener;
}

int port_of(const UniqueFd& listener) {
  sockaddr_storage bytes{};
  socklen_t length = sizeof(bytes);
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bytes), &length) != 0) return 0;
  if (bytes.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&bytes)->sin_port);
  return bytes.ss_family == AF_INET6 ? ntohs(reinterpret_cast<const sockaddr_in6*>(&bytes)->sin6_port) : 0;
}

void send_at_once(const UniqueFd& connection) {
  const int on = 1;
  ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace sluice::transport
