// The way to Prometheus as people have it: an authority of its own, a client certificate, a token, a password, headers.
#pragma once

#include <memory>

#include "operator/config.h"
#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/http/transport.h"

namespace sluice::control {

// A transport to config.url as config.connection says. Certificates are read before each request, and a changed file
// makes a new connection. Tokens and passwords are read again after a minute, and after a 401. While a file cannot be
// read, its last content stays in use. Only unary requests are supported.
// Errors: InvalidArgument for a URL that cannot be used. A file that was never readable or holds no PEM makes send()
// fail with Unauthenticated or InvalidArgument, naming the field of metrics.connection.
// REQUIRES: `clock` outlives the transport.
Result<std::shared_ptr<http::Transport>> open_prometheus(const MetricsSource& config, const Clock& clock);

}  // namespace sluice::control
