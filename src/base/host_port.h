// Where a program listens, and whom it asks: "HOST:PORT", or "[IPv6]:PORT".
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace sluice {

struct HostPort {
  std::string host;  // a name or an address; one of IPv6 without its brackets
  std::uint16_t port = 0;

  bool is_ipv6() const { return host.find(':') != std::string::npos; }
  std::string to_string() const;
};

// Errors: InvalidArgument for another text. An address of IPv6 needs its brackets: "::1:80" may be an address alone.
Result<HostPort> parse_host_port(std::string_view text);

}  // namespace sluice
