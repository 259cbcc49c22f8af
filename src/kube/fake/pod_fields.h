// The fields of a pod, as far as the API server's decoder tells right from wrong in what Sluice and its users write.
//
// Thread safety: pure functions.
#pragma once

#include <memory>

#include "src/kube/fake/schema.h"

namespace sluice::kube::fake {

// Of a Pod, and of a Job with its pod template (Kubernetes 1.34). Fields below a field that is not named here may be
// anything.
std::shared_ptr<const Schema> pod_fields();
std::shared_ptr<const Schema> job_fields();

}  // namespace sluice::kube::fake
