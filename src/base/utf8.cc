#include "src/base/utf8.h"

#include <cstdint>

namespace sluice {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Length {
  unsigned char first;  // a character of `bytes` begins with first <= byte <= last
  unsigned char last;
  std::size_t bytes;
};
constexpr Length kLengths[] = {{0x00, 0x7F, 1}, {0xC2, 0xDF, 2}, {0xE0, 0xEF, 3}, {0xF0, 0xF4, 4}};

// Of overlong forms, surrogates and what is beyond U+10FFFF, the second byte tells (RFC 3629, section 4).
bool second_byte_fits(unsigned char first, unsigned char second) {
  if (first == 0xE0) return second >= 0xA0;
  if (first == 0xED) return second <= 0x9F;
  if (first == 0xF0) return second >= 0x90;
  if (first == 0xF4) return second <= 0x8F;
  return true;
}

// Bytes of the character that `text` begins with; 0 if it begins with none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(text[index]); };
  for (const Length& length : kLengths) {
    if (byte(0) < length.first || byte(0) > length.last) continue;
    if (text.size() < length.bytes) return 0;
    for (std::size_t index = 1; index < length.bytes; ++index)
      if ((byte(index) & 0xC0) != 0x80) return 0;
    return length.bytes == 1 || second_byte_fits(byte(0), byte(1)) ? length.bytes : 0;
  }
  return 0;
}

}  // namespace

std::string cut_text(std::string_view text, std::size_t max_bytes) {
  std::string cut;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view character = bytes == 0 ? kReplacement : text.substr(0, bytes);
    if (cut.size() + character.size() > max_bytes) break;
    cut += character;
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return cut;
}

std::string quote_body(std::string_view body, std::size_t max_bytes) {
  if (body.empty()) return "";
  if (body.starts_with("\x1f\x8b")) return "bytes of gzip, which nothing here asks for";
  const std::size_t begin = body.find("<title>");
  const std::size_t end = body.find("</title>");
  const bool has_title = begin != std::string_view::npos && end != std::string_view::npos && begin < end;
  if (has_title) return "web page '" + cut_text(body.substr(begin + 7, end - begin - 7), max_bytes) + "'";
  return "'" + cut_text(body, max_bytes) + "'";
}

}  // namespace sluice
