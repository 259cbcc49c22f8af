// Compares two resourceVersions of one resource (not of different ones) as decimal numbers of any length (KEP-5504).
// Servers that count in another way exist behind the aggregation layer.
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "src/kube/resource.h"

namespace sluice::kube {

// Whether `a` is certainly older than `b`; false when one of them is not a number.
bool is_older_version(std::string_view a, std::string_view b);

// metadata.resourceVersion; empty when there is none.
std::string resource_version_of(const Json& object);

}  // namespace sluice::kube
