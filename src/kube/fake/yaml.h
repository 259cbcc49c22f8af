// YAML documents (CRDs, conformance suites, scenarios) as JSON.
#pragma once

#include <string>

#include "src/base/result.h"
#include "src/kube/resource.h"

namespace sluice::kube::fake {

// Plain scalars become booleans, null, integers or decimal fractions where they look like one; quoted ones are texts.
// Thread safety: pure. Errors: InvalidArgument with the line.
Result<Json> parse_yaml(const std::string& text);

// Errors: as parse_yaml, with the file's name; NotFound.
Result<Json> read_yaml(const std::string& path);

}  // namespace sluice::kube::fake
