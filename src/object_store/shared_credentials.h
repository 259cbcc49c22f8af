// The shared file of credentials, as the tools of S3 have it: sections of "name = value".
// Thread safety: a pure function.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/object_store/sigv4.h"

namespace sluice::object_store {

// Those of a profile; nullopt: it has none. InvalidArgument: this is no such file; the message holds nothing of it.
Result<std::optional<Credentials>> credentials_in(std::string_view text, std::string_view profile);

}  // namespace sluice::object_store
