// AWS Signature Version 4 for GET requests without a body, as S3 and the stores that speak its language check it.
//
// Published as "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)" in the reference of
// S3; the tests hold its example. Thread safety: pure functions and values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/base/clock.h"

namespace sluice::object_store {

using Headers = std::vector<std::pair<std::string, std::string>>;

// Of one identity. `secret` and `token` are for no message.
struct Credentials {
  std::string key_id;
  std::string secret;
  std::string token;  // "": none

  friend bool operator==(const Credentials&, const Credentials&) = default;
};

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

// `headers`, which have Host, and those that sign them. `path`: percent-encoded, without a query. `payload`: the
// SHA-256 of the body in hexadecimal digits.
Headers signed_headers(std::string_view path, Headers headers, const Credentials& credentials,
                       const std::string& region, Clock::WallTimePoint when,
                       std::string_view payload = kUnsignedPayload);

}  // namespace sluice::object_store
