// JSON text into values and back. simdjson reads it, which takes a twentieth of what building the values takes.
// Thread safety: a pure function on its arguments.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/kube/resource.h"

namespace sluice::kube {

// Where members of no interest stand, from the outermost name on; "*" is each element of an array.
// metadata.managedFields is up to a third of an object's bytes, and no controller reads it.
using MemberPath = std::span<const std::string_view>;
inline constexpr std::string_view kManagedFieldsOfEvent[] = {"object", "metadata", "managedFields"};
inline constexpr std::string_view kManagedFieldsOfList[] = {"items", "*", "metadata", "managedFields"};

// The value of `text` without the members at `left_out`. None: it is not JSON (RFC 8259, in UTF-8), is nested deeper
// than 1,000, or has a whole number beyond 64 bits. Of members of the same name the last one counts.
std::optional<Json> parse_json(std::string_view text, MemberPath left_out = {});

// `value` on one line. Bytes of its texts that are not UTF-8 become U+FFFD: texts come from others, too.
std::string text_of(const Json& value);

}  // namespace sluice::kube
