#include "src/kube/status.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "src/base/utf8.h"
#include "src/kube/json_member.h"
#include "src/kube/json_text.h"

namespace sluice::kube {
namespace {

constexpr std::size_t kMaxQuotedBytes = 512;                     // of an answer that is no Status
constexpr std::string_view kUnknownPath = "404 page not found";  // the API server of a kind that is not installed

// Empty, or the causes of Status.details: [{reason, message, field}].
const Json& causes_of(const Json& status) {
  static const Json kNone = Json::array();
  const auto details = status.find("details");
  if (details == status.end() || !details->is_object()) return kNone;
  const auto causes = details->find("causes");
  return causes != details->end() && causes->is_array() ? *causes : kNone;
}

// Whether a cause has `value` in its `field`.
bool has_cause(const Json& status, const char* field, std::string_view value) {
  for (const Json& cause : causes_of(status)) {
    if (cause.is_object() && text_at(cause, field) == value) return true;
  }
  return false;
}

// A webhook denies with any code from 400 on, such as the 404 of an object that it missed itself. What it says of the
// object that we write, a person must act on; that its own code broke may pass.
bool is_denial(const Json& status) { return text_at(status, "message").starts_with("admission webhook "); }

ErrorCode code_of(int http_status, const Json& status) {
  if (is_denial(status) && http_status < 500 && http_status != 403 && http_status != 429)
    return ErrorCode::kInvalidArgument;
  // "Too large resource version" (504): this server has not seen what we have seen. Like 410 it asks for a new list.
  if (has_cause(status, "reason", "ResourceVersionTooLarge")) return ErrorCode::kGone;
  // A patch may name another incarnation. The server refuses it as an attempt to change the uid (422) if the object
  // exists, and as a conflict (409) if not. To us both say the same.
  if (http_status == 422 && has_cause(status, "field", "metadata.uid")) return ErrorCode::kConflict;
  switch (http_status) {
    case 400:
    case 405:
    case 413:
    case 415:
    case 422: return ErrorCode::kInvalidArgument;
    case 401: return ErrorCode::kUnauthenticated;
    case 403: return ErrorCode::kPermissionDenied;
    case 404: return ErrorCode::kNotFound;
    case 409: return text_at(status, "reason") == "AlreadyExists" ? ErrorCode::kAlreadyExists : ErrorCode::kConflict;
    case 410: return ErrorCode::kGone;
    case 429: return ErrorCode::kResourceExhausted;
    case 502:
    case 503: return ErrorCode::kUnavailable;
    case 504: return ErrorCode::kDeadlineExceeded;
    default: return ErrorCode::kInternal;
  }
}

std::string message_of(int http_status, const Json& status) {
  std::string message = text_at(status, "message");
  if (message.empty()) message = "HTTP status " + std::to_string(http_status);
  for (const Json& cause : causes_of(status)) {
    if (!cause.is_object()) continue;
    const std::string field = text_at(cause, "field");
    // The server's message usually names the fields already.
    if (!field.empty() && message.find(field) == std::string::npos) {
      message += "; " + field + ": " + text_at(cause, "message");
    }
  }
  return message;
}

// Of an object that is absent, taken or changed only the API server may tell. A page of a proxy on the way with such a
// status must not: after a deletion that it answers with 404, the pod would still run beside its replacement.
bool speaks_of_objects(int http_status) { return http_status == 404 || http_status == 409 || http_status == 410; }

}  // namespace

Error error_of_status(std::string_view what, const Json& status) {
  const auto code = status.find("code");
  const int http_status = code != status.end() && code->is_number_integer() ? code->get<int>() : 500;
  return {code_of(http_status, status), std::string(what) + ": " + message_of(http_status, status)};
}

Error error_of_response(std::string_view what, int http_status, std::string_view body) {
  const std::optional<Json> parsed = parse_json(body);
  const bool is_object = parsed && parsed->is_object();
  const Json status = is_object ? *parsed : Json::object();
  const bool by_api_server = !text_at(status, "reason").empty() || is_denial(status) || body.starts_with(kUnknownPath);
  const ErrorCode code =
      speaks_of_objects(http_status) && !by_api_server ? ErrorCode::kUnavailable : code_of(http_status, status);
  if (is_object) return {code, std::string(what) + ": " + message_of(http_status, status)};
  const std::string quote = quote_body(body, kMaxQuotedBytes);
  return {code,
          std::string(what) + ": HTTP status " + std::to_string(http_status) + (quote.empty() ? "" : " " + quote)};
}

}  // namespace sluice::kube
