#include "src/transport/network_socket.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "src/base/host_port.h"

namespace sluice::transport {
namespace {

constexpr int kNetworkBacklog = 64;

struct NetworkAddress {
  sockaddr_storage bytes{};
  socklen_t length = 0;
};

// None: the host is a name.
std::optional<NetworkAddress> network_address(const HostPort& said) {
  NetworkAddress address;
  if (said.is_ipv6()) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(said.port);
    if (::inet_pton(AF_INET6, said.host.c_str(), &six.sin6_addr) != 1) return std::nullopt;
    address.length = sizeof(six);
    std::memcpy(&address.bytes, &six, sizeof(six));
    return address;
  }
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(said.port);
  if (::inet_pton(AF_INET, said.host.c_str(), &four.sin_addr) != 1) return std::nullopt;
  address.length = sizeof(four);
  std::memcpy(&address.bytes, &four, sizeof(four));
  return address;
}

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
  SLUICE_TRY(const HostPort said, parse_host_port(address));
  const auto parsed = network_address(said);
  if (!parsed) return invalid_argument("'" + address + "' is not IP:PORT or [IPv6]:PORT");
  const bool every_address = said.host == "::";
  UniqueFd listener = bound_to(*parsed, every_address);
  const bool no_ipv6 = !listener.valid() && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL);
  if (no_ipv6 && every_address) listener = bound_to(*network_address({"0.0.0.0", said.port}), false);
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
