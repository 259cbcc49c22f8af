// Text that others wrote, made fit for JSON.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

// At most `max_bytes` of `text`, and always UTF-8: it ends at a character's end, and each byte that is part of no
// character becomes U+FFFD.
std::string cut_text(std::string_view text, std::size_t max_bytes);

}  // namespace sluice
