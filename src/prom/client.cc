#include "src/prom/client.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/utf8.h"
#include "src/http/transport.h"

namespace sluice::prom {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxQuotedBytes = 256;

std::string text_at(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Error malformed(std::string_view what) {
  return {ErrorCode::kDataLoss, "Prometheus: malformed answer: " + std::string(what)};
}

bool is_redirect(int status) { return status >= 300 && status < 400; }

// `error_type` is the engine's own ("bad_data", "execution", "timeout", ...), empty when a proxy or a broken server
// answered instead of it.
ErrorCode code_of(int status, std::string_view error_type) {
  if (error_type == "bad_data") return ErrorCode::kInvalidArgument;
  if (error_type == "timeout") return ErrorCode::kDeadlineExceeded;
  if (error_type == "unavailable" || status == 502 || status == 503) return ErrorCode::kUnavailable;
  if (status == 401 || is_redirect(status)) return ErrorCode::kUnauthenticated;
  if (status == 403) return ErrorCode::kPermissionDenied;
  return ErrorCode::kInternal;
}

// What a status says where something other than Prometheus's query engine answers; empty: nothing more than itself.
std::string meaning_of(const http::Response& response) {
  if (is_redirect(response.status)) {
    const auto location = response.headers.find("Location");
    return " leads to '" + (location == response.headers.end() ? "" : cut_text(location->second, kMaxQuotedBytes)) +
           "': a login page in front of it, or a URL that has moved";
  }
  if (response.status == 401) return ": it wants credentials, or does not accept the ones it got";
  if (response.status == 403) return ": the credentials are not allowed to query";
  if (response.status == 404) return ": there is no /api/v1/query; is the path of the URL right?";
  return "";
}

Error error_of(const http::Response& response, const Json& parsed) {
  if (parsed.is_object() && parsed.contains("error")) {
    const std::string type = text_at(parsed, "errorType");
    return {code_of(response.status, type),
            "Prometheus: " + type + ": " + cut_text(text_at(parsed, "error"), kMaxQuotedBytes)};
  }
  const std::string quote = quote_body(response.body, kMaxQuotedBytes);
  return {code_of(response.status, ""), "Prometheus: HTTP status " + std::to_string(response.status) +
                                            meaning_of(response) + (quote.empty() ? "" : "; the answer is " + quote)};
}

// A sample is [seconds, "value"]; the value is text because JSON has no NaN. Adds it to the vector.
Result<void> add_sample(const Json& pair, Labels labels, InstantVector& vector) {
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_string()) {
    return malformed("a value that is no [time, text]");
  }
  const auto& text = pair[1].get_ref<const std::string&>();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return malformed("a value '" + text + "'");
  if (std::isfinite(value)) {
    vector.samples.push_back({std::move(labels), value, pair[0].get<double>()});
  } else {
    vector.absent.push_back({std::move(labels), std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf"});
  }
  return {};
}

Result<void> add_series(const Json& series, InstantVector& vector) {
  const auto metric = series.find("metric");
  const auto value = series.find("value");
  if (metric == series.end() || !metric->is_object()) return malformed("a series without labels");
  // A native histogram has "histogram" instead: a value that the query did not ask for.
  if (value == series.end()) return malformed("a series without a value");
  Labels labels;
  for (const auto& [name, label] : metric->items()) {
    if (!label.is_string()) return malformed("a label that is no text");
    labels.emplace(name, label.get<std::string>());
  }
  return add_sample(*value, std::move(labels), vector);
}

Result<InstantVector> parse(const Json& answer) {
  InstantVector vector;
  if (const auto warnings = answer.find("warnings"); warnings != answer.end() && warnings->is_array()) {
    for (const Json& warning : *warnings) {
      if (warning.is_string()) vector.warnings.push_back(warning.get<std::string>());
    }
  }
  const auto data = answer.find("data");
  if (data == answer.end() || !data->is_object()) return malformed("no data");
  const auto result = data->find("result");
  const std::string type = text_at(*data, "resultType");
  if (result == data->end() || !result->is_array()) return malformed("no result");
  if (type == "scalar") {
    SLUICE_TRY_VOID(add_sample(*result, {}, vector));
  } else if (type == "vector") {
    for (const Json& series : *result) {
      if (!series.is_object()) return malformed("a series that is no object");
      SLUICE_TRY_VOID(add_series(series, vector));
    }
  } else {
    return invalid_argument("Prometheus: the expression yields a " + type + ", not a vector");
  }
  return vector;
}

}  // namespace

Client::Client(std::shared_ptr<http::Transport> transport, std::chrono::milliseconds timeout)
    : transport_(std::move(transport)), timeout_(timeout) {}

Result<InstantVector> Client::query(std::string_view expression, std::stop_token stop,
                                    std::chrono::milliseconds timeout) const {
  timeout = std::min(timeout, timeout_);
  // GET: a long expression still fits (servers take 8 KiB and more), and a query may be repeated.
  const http::Request request{"GET", "/api/v1/query?query=" + http::percent_encode(expression) +
                                         "&timeout=" + std::to_string(timeout.count()) + "ms"};
  const Result<http::Response> response = transport_->send(request, timeout, std::move(stop));
  if (!response.ok()) return response.error().with_context("Prometheus");

  const Json parsed = Json::parse(response->body, nullptr, false);
  if (!response->succeeded()) return error_of(*response, parsed);
  if (!parsed.is_object())
    return malformed("no JSON object but " +
                     (response->body.empty() ? "nothing" : quote_body(response->body, kMaxQuotedBytes)) +
                     "; does a proxy or a login page answer in its place?");
  const std::string status = text_at(parsed, "status");
  if (status == "error") return error_of(*response, parsed);
  if (status != "success") return malformed("no status");
  return parse(parsed);
}

}  // namespace sluice::prom
