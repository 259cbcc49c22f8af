// Transport over cpprestsdk. The only place that knows cpprestsdk; its workarounds are explained in the .cc.
#pragma once

#include <cstddef>
#include <memory>

#include "src/http/transport.h"

namespace sluice::http {

struct CpprestOptions {
  // Largest body that send() accepts, and stream() for a status other than 2xx.
  std::size_t max_body_bytes = 256u << 20;
  // A unary exchange with no byte for this long is given up, whatever its own timeout says.
  std::chrono::milliseconds unary_idle_limit{30000};
};

// Properties:
//  - send() keeps connections alive and reuses them; GET, HEAD, PUT, DELETE are sent a second time, once, when a
//    connection fails at once (the server had closed a kept connection). Other verbs are not: their outcome is unknown.
//    A POST that may not be repeated uses a connection of its own.
//  - stream() uses a connection of its own, closed afterwards: rotated certificates apply to every new stream.
//  - a stop request takes effect within 100 ms, also while connecting.
// Blocking time is real time: this is the edge of the program.
// Errors: InvalidArgument for a base_url or PEM text that cannot be used.
Result<std::shared_ptr<Transport>> make_cpprest_transport(const Endpoint& endpoint, const CpprestOptions& options = {});

}  // namespace sluice::http
