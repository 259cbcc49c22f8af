// Times as the API writes them (RFC 3339, UTC). Thread safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/base/clock.h"

namespace sluice::kube {

// metav1.Time: "2026-11-21T08:00:00Z"
std::string format_time(Clock::WallTimePoint time);

// metav1.MicroTime: "2026-11-21T08:00:00.123456Z"
std::string format_microtime(Clock::WallTimePoint time);

// Both of them; nullopt for anything else.
std::optional<Clock::WallTimePoint> parse_time(std::string_view text);

}  // namespace sluice::kube
