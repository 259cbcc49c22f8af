// Where a worker listens. Without TLS that is a loopback address, unless another one is wanted.
#pragma once

#include <string>

#include "src/base/flags.h"
#include "src/base/result.h"

namespace sluice::worker {

inline constexpr const char* kInsecureListen = "127.0.0.1:7471";

// Of --listen, --insecure and --insecure-anywhere, which names an address that the network can reach in the clear.
// Errors: InvalidArgument for such an address as --listen, and for flags that do not go together.
Result<std::string> listen_address(const Flags& flags);

}  // namespace sluice::worker
