#include "src/base/host_port.h"

#include <charconv>

namespace sluice {

std::string HostPort::to_string() const { return (is_ipv6() ? "[" + host + "]" : host) + ":" + std::to_string(port); }

Result<HostPort> parse_host_port(std::string_view text) {
  const Error malformed = invalid_argument("'" + std::string(text) + "' is not HOST:PORT or [IPv6]:PORT");
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return malformed;
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  HostPort result{std::string(host), 0};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, result.port);
  const bool is_host = !host.empty() && host.find_first_of("[]") == host.npos && result.is_ipv6() == bracketed;
  if (!is_host || error != std::errc() || rest != end) return malformed;
  return result;
}

}  // namespace sluice
