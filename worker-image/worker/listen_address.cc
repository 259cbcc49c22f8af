#include "worker-image/worker/listen_address.h"

#include <arpa/inet.h>

#include "src/base/host_port.h"

namespace sluice::worker {
namespace {

// A name that only begins like an address ("127.example.com") may be of any other machine.
bool is_loopback(const std::string& address) {
  const auto said = parse_host_port(address);
  if (!said.ok()) return false;
  in_addr parsed{};
  if (::inet_pton(AF_INET, said->host.c_str(), &parsed) == 1) return ntohl(parsed.s_addr) >> 24 == 127;
  return said->host == "localhost" || said->host == "::1";
}

}  // namespace

Result<std::string> listen_address(const Flags& flags) {
  const bool anywhere = flags.given("insecure-anywhere");
  if (!flags.given("insecure")) {
    if (anywhere) return invalid_argument("--insecure-anywhere: belongs to --insecure; with TLS say --listen");
    return flags.text("listen");
  }
  if (anywhere && flags.given("listen"))
    return invalid_argument("--insecure-anywhere: is the address; --listen cannot be another one");
  if (anywhere) return flags.text("insecure-anywhere");
  if (!flags.given("listen")) return std::string(kInsecureListen);
  if (is_loopback(flags.text("listen"))) return flags.text("listen");
  return invalid_argument("--listen: with --insecure a worker listens on loopback only (or say --insecure-anywhere " +
                          flags.text("listen") + ")");
}

}  // namespace sluice::worker
