// The network by Boost.Asio, with Boost.Beast's parser of answers and OpenSSL.
#pragma once

#include <memory>

#include "src/object_store/network.h"

namespace sluice::object_store {

struct BeastOptions {
  Clock::Duration silence = std::chrono::seconds(30);  // of the other side, before it counts as gone
  Clock::Duration idle = std::chrono::seconds(15);     // a connection is used again within
};

// Connections are kept for the next request of the same host, kIdleConnectionsMax at most. One that its host has closed
// meanwhile is replaced, and the request sent again.
inline constexpr std::size_t kIdleConnectionsMax = 256;

std::unique_ptr<Network> make_beast_network(BeastOptions options = {});

}  // namespace sluice::object_store
