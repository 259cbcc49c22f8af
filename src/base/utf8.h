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

// What a body is that should have been something else, for the message of an error: of a web page its title, of bytes
// of gzip just that, else its beginning in quotes, of `max_bytes` at most. Empty for an empty body.
std::string quote_body(std::string_view body, std::size_t max_bytes);

}  // namespace sluice
