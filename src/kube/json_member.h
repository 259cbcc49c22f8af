// Members of JSON that others have written: any member may be absent or of another type.
// Thread safety: pure functions on their arguments.
#pragma once

#include <string>
#include <string_view>

#include "src/kube/resource.h"

namespace sluice::kube {

// The text of the object's member; empty where there is none. `object` may be any value.
std::string text_at(const Json& object, const char* member);
std::string text_at(const Json& object, const char* outer, const char* inner);

// The value at "/metadata/name"; null where any step of the way is missing. A slash within a name is written "~1", as
// in RFC 6901. Elements of arrays have no names. The reference points into `object`.
const Json& value_at(const Json& object, std::string_view pointer);

}  // namespace sluice::kube
