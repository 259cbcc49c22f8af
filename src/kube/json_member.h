// Texts in JSON that others have written: any member may be absent or of another type.
// Thread safety: pure functions on their arguments.
#pragma once

#include <string>

#include "src/kube/resource.h"

namespace sluice::kube {

// The text of the object's member; empty where there is none. `object` may be any value.
std::string text_at(const Json& object, const char* member);
std::string text_at(const Json& object, const char* outer, const char* inner);

}  // namespace sluice::kube
