// A policy: at most so many requests that change something are on their way at once; more of them wait their turn.
//
// API servers protect themselves from too many requests (priority and fairness), so a rate limit in the client only
// slows it down. A client must bound how much it can write before it sees the effect.
#pragma once

#include <memory>

#include "src/http/transport.h"

namespace sluice::http {

// Every method but GET and HEAD counts. The wait is part of the request's timeout (DeadlineExceeded: it was not sent).
// REQUIRES: max_in_flight > 0.
std::shared_ptr<Transport> with_write_limit(std::shared_ptr<Transport> inner, int max_in_flight);

}  // namespace sluice::http
