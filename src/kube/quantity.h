// Kubernetes quantities ("250m", "1.5Gi", "1e3"), calculated exactly in integers.
//
// Grammar (apimachinery, resource.Quantity): sign? digits ('.' digits)? suffix?, suffix one of n u m k M G T P E,
// Ki Mi Gi Ti Pi Ei, or a decimal exponent (e3, E-2). As Kubernetes does, fractions of the unit asked for are
// rounded away from zero: a request of "100u" CPU is one millicore, never none. And as it does, what is beyond 64 bits
// counts as the most that fits: a quota of that size leaves everything, not nothing.
// Errors: InvalidArgument with the text, for anything outside the grammar.
#pragma once

#include <cstdint>
#include <string_view>

#include "src/base/result.h"

namespace sluice::kube {

// "2" -> 2000, "250m" -> 250
Result<std::int64_t> parse_millicores(std::string_view quantity);

// "1Ki" -> 1024, "1k" -> 1000, "3" -> 3. Also for plain counts, such as of GPUs.
Result<std::int64_t> parse_bytes(std::string_view quantity);

}  // namespace sluice::kube
