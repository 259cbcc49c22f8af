// A policy by which a test decides the fate of each unary request on the network. With it a simulation loses, delays,
// repeats and refuses; it never invents an answer that a server could not have given.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "src/base/clock.h"
#include "src/http/transport.h"

namespace sluice::http {

// What happens to one request, in this order. The default: nothing.
struct Fault {
  std::chrono::milliseconds delay_before{0};  // on the way to the server
  bool lose_request = false;                  // the server never sees it: Unavailable
  std::optional<Response> refuse;             // the server (or a proxy) answers this and does nothing
  bool repeat = false;                        // the server gets it twice; the second answer comes back
  std::chrono::milliseconds delay_after{0};   // on the way back
  bool lose_answer = false;                   // the server has done it, and the client does not know: DeadlineExceeded
  std::optional<Response> replace_answer;     // the server has done it, and a proxy answers this
};

// Called once per request, before it is sent. Thread safety: as the transport is used.
using FaultPlan = std::function<Fault(const Request&)>;

// Delays pass on `clock`; one that uses up the timeout is DeadlineExceeded, before the request reached the server or
// after. Streams are passed on untouched: who simulates has them in hand anyway.
// REQUIRES: `clock` outlives the transport.
std::shared_ptr<Transport> with_faults(std::shared_ptr<Transport> inner, const Clock& clock, FaultPlan plan);

}  // namespace sluice::http
