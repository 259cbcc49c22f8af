// A connection to a server on this machine that sends bytes as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::http::testing {

// Thread safety: none.
class RawClient {
 public:
  // On 127.0.0.1.
  explicit RawClient(std::uint16_t port);
  // On ::1.
  static RawClient over_ipv6(std::uint16_t port);
  RawClient(RawClient&& other) noexcept;
  ~RawClient();

  // Whether the server still takes them.
  bool send(std::string_view bytes);

  // What arrives next; empty at the end.
  std::string read_some();

  // Until the server hangs up.
  std::string read_all();

 private:
  RawClient() = default;

  int socket_ = -1;
};

// Whether this machine has an address ::1; those without IPv6 have none.
bool has_ipv6();

// The answer to "GET /healthz" and the like, on a connection of its own; all of it, from the status line on. Empty if
// no server listens.
std::string ask(std::uint16_t port, const std::string& first_line, const std::string& headers = "");

}  // namespace sluice::http::testing
