// The shape of a pod template that a user wrote.
//
// Thread safety: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "src/base/result.h"

namespace sluice::api {

// Whether the template has the shape of Kubernetes' own type, as far as Sluice reads it or copies parts of it. The
// CRDs refuse another shape at admission; this is for objects that were stored before the CRDs did.
// Errors: InvalidArgument that names the field, `path` ("spec.trainer.template") before it, and the way out.
Result<void> check_pod_template(const nlohmann::json& pod_template, std::string_view path);

// The same of a part of a template, which need not have containers.
Result<void> check_pod_template_part(const nlohmann::json& pod_template, std::string_view path);

}  // namespace sluice::api
