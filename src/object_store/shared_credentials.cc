#include "src/object_store/shared_credentials.h"

#include <algorithm>
#include <cctype>

namespace sluice::object_store {
namespace {

std::string_view without_blanks(std::string_view text) {
  const auto is_blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

bool is_same_name(std::string_view text, std::string_view name) {
  return std::equal(text.begin(), text.end(), name.begin(), name.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
}

}  // namespace

Result<std::optional<Credentials>> credentials_in(std::string_view text, std::string_view profile) {
  Credentials found;
  bool is_in_section = false, is_in_profile = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::string_view content = without_blanks(line);
    if (content.empty() || content.front() == '#' || content.front() == ';') continue;
    // A value goes on, or a table within one begins, which the tools of S3 have for settings.
    if (is_in_section && std::isspace(static_cast<unsigned char>(line.front())) != 0) continue;
    if (content.front() == '[' && content.find(']') != std::string_view::npos) {
      is_in_section = true;
      is_in_profile = content.substr(1, content.find(']') - 1) == profile;
      continue;
    }
    const std::size_t sign = content.find_first_of("=:");
    if (!is_in_section || sign == std::string_view::npos || sign == 0)
      return invalid_argument("no file of credentials");
    if (!is_in_profile) continue;
    const std::string_view name = without_blanks(content.substr(0, sign));
    const std::string_view value = without_blanks(content.substr(sign + 1));
    if (is_same_name(name, "aws_access_key_id")) found.key_id = value;
    if (is_same_name(name, "aws_secret_access_key")) found.secret = value;
    if (is_same_name(name, "aws_session_token")) found.token = value;
  }
  if (found.key_id.empty() || found.secret.empty()) return std::optional<Credentials>();
  return std::optional(found);
}

}  // namespace sluice::object_store
