#include "src/http/proxy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "src/base/host_port.h"

namespace sluice::http {
namespace {

constexpr int kHttpPort = 80;
constexpr int kHttpsPort = 443;

// An address of either family, as one of IPv6.
using AddressBytes = std::array<std::uint8_t, 16>;
constexpr int kMappedBits = 96;

std::optional<AddressBytes> address_of(std::string_view text) {
  const bool is_v6 = text.find(':') != text.npos;
  const std::string full = (is_v6 ? "" : "::ffff:") + std::string(text);
  AddressBytes bytes{};
  if (::inet_pton(AF_INET6, full.c_str(), bytes.data()) != 1) return std::nullopt;
  return bytes;
}

bool is_within(const AddressBytes& address, std::string_view network) {
  const std::size_t slash = network.find('/');
  const std::string_view first = network.substr(0, slash);
  const auto base = address_of(first);
  const int most = first.find(':') == first.npos ? 128 - kMappedBits : 128;
  int bits = most;
  if (slash != network.npos) {
    const char* const end = network.data() + network.size();
    const auto [rest, error] = std::from_chars(network.data() + slash + 1, end, bits);
    if (error != std::errc() || rest != end || bits < 0 || bits > most) return false;
  }
  if (!base) return false;
  for (int bit = 0; bit < 128 - most + bits; ++bit) {
    const auto differ = static_cast<unsigned>(address[bit / 8] ^ (*base)[bit / 8]);
    if ((differ >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char each) { return each >= 'A' && each <= 'Z' ? static_cast<char>(each - 'A' + 'a') : each; });
  return lower;
}

bool is_named(const std::string& host, std::string_view entry) {
  if (entry.starts_with("*.")) entry.remove_prefix(1);
  if (entry.starts_with('.')) return host.size() > entry.size() && host.ends_with(entry);
  return host == entry || host.ends_with("." + std::string(entry));
}

bool is_loopback(const std::string& host) {
  const auto address = address_of(host);
  return lower_case(host) == "localhost" ||
         (address && (is_within(*address, "127.0.0.0/8") || is_within(*address, "::1")));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Of a URL. None: it is no URL.
std::optional<std::pair<std::string, int>> host_and_port(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos) return std::nullopt;
  const int usual = url.starts_with("https") ? kHttpsPort : kHttpPort;
  std::string_view authority = url.substr(scheme + 3);
  authority = authority.substr(0, authority.find_first_of("/?#"));
  authority.remove_prefix(authority.rfind('@') == authority.npos ? 0 : authority.rfind('@') + 1);
  if (const auto both = parse_host_port(authority); both.ok()) return std::pair(both->host, int{both->port});
  if (authority.starts_with('[') && authority.ends_with(']')) authority = authority.substr(1, authority.size() - 2);
  return std::pair(std::string(authority), usual);
}

std::string variable(const char* lower, const char* upper) {
  for (const char* name : {lower, upper})
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return "";
}

}  // namespace

ProxyEnvironment ProxyEnvironment::current() {
  return {variable("http_proxy", "HTTP_PROXY"), variable("https_proxy", "HTTPS_PROXY"),
          variable("no_proxy", "NO_PROXY")};
}

bool asked_directly(const std::string& host, int port, const std::string& no_proxy) {
  const auto address = address_of(host);
  const std::string name = lower_case(host);
  std::string_view rest = no_proxy;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string entry = lower_case(trimmed(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    if (entry.empty()) continue;
    const auto with_port = parse_host_port(entry);
    if (with_port.ok() && with_port->port != port) continue;
    const std::string said = with_port.ok() ? with_port->host : entry;
    if (said == "*" || (address ? is_within(*address, said) : is_named(name, said))) return true;
  }
  return false;
}

std::string proxy_for(const std::string& url, const ProxyEnvironment& environment) {
  const auto asked = host_and_port(url);
  std::string proxy = url.starts_with("https://") ? environment.https_proxy : environment.http_proxy;
  if (proxy.empty() || !asked || is_loopback(asked->first)) return "";
  if (asked_directly(asked->first, asked->second, environment.no_proxy)) return "";
  if (proxy.find("://") == proxy.npos) proxy.insert(0, "http://");
  return proxy;
}

}  // namespace sluice::http
