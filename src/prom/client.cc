#include "src/prom/client.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include <nlohmann/json.hpp>

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

// `error_type` is the engine's own ("bad_data", "execution", "timeout", ...), empty when a proxy or a broken server
// answered instead of it.
ErrorCode code_of(int status, std::string_view error_type) {
  if (error_type == "bad_data") return ErrorCode::kInvalidArgument;
  if (error_type == "timeout") return ErrorCode::kDeadlineExceeded;
  if (error_type == "unavailable" || status == 502 || status == 503) return ErrorCode::kUnavailable;
  if (status == 401) return ErrorCode::kUnauthenticated;
  if (status == 403) return ErrorCode::kPermissionDenied;
  return ErrorCode::kInternal;
}

Error error_of(const http::Response& response, const Json& parsed) {
  if (parsed.is_object() && parsed.contains("error")) {
    const std::string type = text_at(parsed, "errorType");
    return {code_of(response.status, type), "Prometheus: " + type + ": " + text_at(parsed, "error")};
  }
  return {code_of(response.status, ""), "Prometheus: HTTP status " + std::to_string(response.status) + " '" +
                                            response.body.substr(0, kMaxQuotedBytes) + "'"};
}

// A sample is [seconds, "value"]; the value is text because JSON has no NaN. Adds it to the vector as what it is.
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
  // A native histogram has "histogram" instead: a value nobody asked for.
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

Result<InstantVector> Client::query(std::string_view expression, std::stop_token stop) const {
  // GET: a long expression still fits (servers take 8 KiB and more), and a query may be repeated.
  const http::Request request{"GET", "/api/v1/query?query=" + http::percent_encode(expression) +
                                         "&timeout=" + std::to_string(timeout_.count()) + "ms"};
  const Result<http::Response> response = transport_->send(request, timeout_, std::move(stop));
  if (!response.ok()) return response.error().with_context("Prometheus");

  const Json parsed = Json::parse(response->body, nullptr, false);
  if (!response->succeeded()) return error_of(*response, parsed);
  if (!parsed.is_object()) return malformed("no JSON object");
  const std::string status = text_at(parsed, "status");
  if (status == "error") return error_of(*response, parsed);
  if (status != "success") return malformed("no status");
  return parse(parsed);
}

}  // namespace sluice::prom
