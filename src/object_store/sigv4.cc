#include "src/object_store/sigv4.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>

namespace sluice::object_store {
namespace {

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &bytes, EVP_sha256(), nullptr);
  return {reinterpret_cast<const char*>(digest.data()), bytes};
}

std::string hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
       text.size(), digest.data(), &bytes);
  return {reinterpret_cast<const char*>(digest.data()), bytes};
}

// "20130524T000000Z"
std::string moment_of(Clock::WallTimePoint when) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts)};
}

std::string in_small_letters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// Blanks in a row count as one, and those around the value do not count.
std::string trimmed(std::string_view value) {
  std::string result;
  for (const char c : value) {
    const bool is_blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (is_blank && (result.empty() || result.back() == ' ')) continue;
    result += is_blank ? ' ' : c;
  }
  if (result.ends_with(' ')) result.pop_back();
  return result;
}

struct Canonical {
  std::string lines;  // "name:value\n", by name
  std::string names;  // "a;b;c"
};

Canonical canonical(const Headers& headers) {
  Headers sorted;
  for (const auto& [name, value] : headers) sorted.emplace_back(in_small_letters(name), trimmed(value));
  std::sort(sorted.begin(), sorted.end());
  Canonical result;
  for (const auto& [name, value] : sorted) {
    result.lines += name + ":" + value + "\n";
    result.names += (result.names.empty() ? "" : ";") + name;
  }
  return result;
}

}  // namespace

Headers signed_headers(std::string_view path, Headers headers, const Credentials& credentials,
                       const std::string& region, Clock::WallTimePoint when, std::string_view payload) {
  const std::string moment = moment_of(when);
  const std::string day = moment.substr(0, 8);
  const std::string scope = day + "/" + region + "/s3/aws4_request";
  headers.emplace_back("x-amz-date", moment);
  headers.emplace_back("x-amz-content-sha256", payload);
  if (!credentials.token.empty()) headers.emplace_back("x-amz-security-token", credentials.token);
  const auto [lines, names] = canonical(headers);
  const std::string request =
      std::string("GET\n").append(path).append("\n\n").append(lines).append("\n").append(names).append("\n").append(
          payload);
  const std::string to_sign = "AWS4-HMAC-SHA256\n" + moment + "\n" + scope + "\n" + hexadecimal(sha256(request));
  std::string key = "AWS4" + credentials.secret;
  for (const std::string& part : {day, region, std::string("s3"), std::string("aws4_request")}) key = hmac(key, part);
  headers.emplace_back("Authorization", "AWS4-HMAC-SHA256 Credential=" + credentials.key_id + "/" + scope +
                                            ",SignedHeaders=" + names +
                                            ",Signature=" + hexadecimal(hmac(key, to_sign)));
  return headers;
}

}  // namespace sluice::object_store
