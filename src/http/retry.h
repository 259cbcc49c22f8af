// A policy: repeats a unary request when, and only when, the server asks for it: 429 or 5xx with a Retry-After header
// (client-go, rest/with_retry.go). Whether to repeat another request is the caller's decision.
#pragma once

#include <chrono>
#include <memory>

#include "src/base/clock.h"
#include "src/http/transport.h"

namespace sluice::http {

struct RetryOptions {
  int max_retries = 5;
  std::chrono::seconds max_wait{30};  // a longer Retry-After is cut
};

// The timeout given to send() is that of one try. Streams are passed on: who opened one knows where to go on.
// REQUIRES: `clock` outlives the transport.
std::shared_ptr<Transport> with_retries(std::shared_ptr<Transport> inner, const Clock& clock,
                                        const RetryOptions& options = {});

}  // namespace sluice::http
