// A policy: counts and times requests, for /metrics.
//
//   sluice_api_requests_total{method, code}    code: the HTTP status, or the error's name; streams when they end
//   sluice_api_request_seconds{method}         unary requests only
//   sluice_api_stream_bytes_total              of bodies handed to sinks
#pragma once

#include <memory>

#include "src/base/clock.h"
#include "src/http/transport.h"

namespace prometheus {
class Collectable;
}

namespace sluice::http {

// Thread safety: all methods may be called from any thread.
class RequestMetrics {
 public:
  RequestMetrics();
  ~RequestMetrics();

  // A transport that counts here what it sends through `inner`. It keeps the counters alive by itself.
  // REQUIRES: `clock` outlives the transport.
  std::shared_ptr<Transport> observe(std::shared_ptr<Transport> inner, const Clock& clock);

  // For metrics_page.
  std::weak_ptr<prometheus::Collectable> collectable() const;

 private:
  struct Counters;
  class ObservedTransport;
  std::shared_ptr<Counters> counters_;
};

}  // namespace sluice::http
