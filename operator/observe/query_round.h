// The queries of one round: a few beside each other, with one deadline for all.
//
// One query that is slow or fails costs the others nothing. A server that is down costs the deadline at most, and is
// not asked all of them.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/prom/client.h"

namespace sluice::observe {

// Two queries of the client's longest patience, one after the other.
constexpr std::chrono::milliseconds kRoundLimit{10'000};

// After so many failures, and no answer, the rest is not asked.
constexpr int kFailuresOfASilentServer = 4;

// Answers one query within the timeout; prom::Client::query in production.
using QueryFunction = std::function<Result<prom::InstantVector>(const std::string& expression, std::stop_token stop,
                                                                std::chrono::milliseconds timeout)>;

// The answers in the order of the expressions. They begin in this order, `at_once` at a time, on as many threads, the
// caller's among them. An expression that was not asked has DeadlineExceeded or Unavailable. An exception of `query` is
// Internal. REQUIRES: at_once >= 1; `query` may be called from several threads at once where at_once is above 1.
std::vector<Result<prom::InstantVector>> ask_all(std::span<const std::string> expressions, const QueryFunction& query,
                                                 int at_once, const Clock& clock, std::stop_token stop);

}  // namespace sluice::observe
