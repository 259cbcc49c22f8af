// TCP sockets for servers that accept connections themselves.
//
// Thread safety: pure functions.
#pragma once

#include <string>

#include "src/base/result.h"
#include "src/transport/unique_fd.h"

namespace sluice::transport {

// Listens on IP:PORT or [IP]:PORT without blocking; port 0: one that is free. [::] is every address of both families,
// and of IPv4 alone where the system has no IPv6.
// Errors: InvalidArgument for another address; those of the system.
Result<UniqueFd> listen_on_network(const std::string& address);

// The port that the socket listens on; 0: it has none.
int port_of(const UniqueFd& listener);

// Answers of a few bytes are sent at once. For an accepted connection.
void send_at_once(const UniqueFd& connection);

}  // namespace sluice::transport
