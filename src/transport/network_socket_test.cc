#include "src/transport/network_socket.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "src/base/testing/catch.h"

namespace sluice::transport {
namespace {

bool reaches_ipv4(int port) {
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

bool reaches_ipv6(int port) {
  const UniqueFd client(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  address.sin6_addr = in6addr_loopback;
  return client.valid() && ::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

TEST_CASE("every address is one of IPv4 and one of IPv6, where the machine has it") {
  const bool has_ipv6 = listen_on_network("[::1]:0").ok();
  const auto everywhere = listen_on_network("[::]:0");
  REQUIRE(everywhere.ok());
  CHECK(reaches_ipv4(port_of(*everywhere)));
  CHECK(reaches_ipv6(port_of(*everywhere)) == has_ipv6);
}

TEST_CASE("an address of one family is of that family alone") {
  for (const char* address : {"127.0.0.1:0", "0.0.0.0:0"}) {
    CAPTURE(address);
    const auto listener = listen_on_network(address);
    REQUIRE(listener.ok());
    CHECK(reaches_ipv4(port_of(*listener)));
    CHECK_FALSE(reaches_ipv6(port_of(*listener)));
  }
}

TEST_CASE("what is no address, or cannot be bound, is an error") {
  for (const char* address : {"", ":1", "localhost:1", "1.2.3.4", "[::]", "::1:1", "[::]:x", "127.0.0.1:99999"}) {
    CAPTURE(address);
    const auto listener = listen_on_network(address);
    REQUIRE_FALSE(listener.ok());
    CHECK(listener.error().code() == ErrorCode::kInvalidArgument);
  }
  CHECK_FALSE(listen_on_network("192.0.2.1:0").ok());  // of no machine
  const auto first = listen_on_network("127.0.0.1:0");
  CHECK_FALSE(listen_on_network("127.0.0.1:" + std::to_string(port_of(*first))).ok());
}

}  // namespace
}  // namespace sluice::transport
