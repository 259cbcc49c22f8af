#include "src/http/recording.h"

#include <array>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace sluice::http {
namespace {

using nlohmann::json;

constexpr std::array kCodes = {ErrorCode::kInvalidArgument,
                               ErrorCode::kNotFound,
                               ErrorCode::kAlreadyExists,
                               ErrorCode::kConflict,
                               ErrorCode::kGone,
                               ErrorCode::kPermissionDenied,
                               ErrorCode::kUnauthenticated,
                               ErrorCode::kResourceExhausted,
                               ErrorCode::kUnavailable,
                               ErrorCode::kDeadlineExceeded,
                               ErrorCode::kCancelled,
                               ErrorCode::kDataLoss,
                               ErrorCode::kInternal};

ErrorCode code_named(const std::string& name) {
  for (const ErrorCode code : kCodes) {
    if (to_string(code) == name) return code;
  }
  return ErrorCode::kInternal;
}

json headers_to_json(const Headers& headers) {
  json object = json::object();
  for (const auto& [name, value] : headers) object[name] = value;
  return object;
}

Headers headers_from_json(const json& object) {
  Headers headers;
  for (const auto& [name, value] : object.items()) headers[name] = value.get<std::string>();
  return headers;
}

json to_json(const RecordedExchange& exchange) {
  const Request& request = exchange.request;
  json line{{"request",
             {{"method", request.method},
              {"target", request.target},
              {"headers", headers_to_json(request.headers)},
              {"body", request.body}}}};
  if (exchange.streamed) line["pieces"] = exchange.pieces;
  if (exchange.outcome.ok()) {
    const Response& response = *exchange.outcome;
    line["response"] = {
        {"status", response.status}, {"headers", headers_to_json(response.headers)}, {"body", response.body}};
  } else {
    const Error& error = exchange.outcome.error();
    line["error"] = {{"code", to_string(error.code())}, {"message", error.message()}};
  }
  return line;
}

// Throws json::exception for what to_json() did not write.
RecordedExchange from_json(const json& line) {
  RecordedExchange exchange;
  const json& request = line.at("request");
  exchange.request = {request.at("method"), request.at("target"), headers_from_json(request.at("headers")),
                      request.at("body")};
  exchange.streamed = line.contains("pieces");
  if (exchange.streamed) exchange.pieces = line.at("pieces").get<std::vector<std::string>>();
  if (line.contains("error")) {
    const json& error = line.at("error");
    exchange.outcome = Error(code_named(error.at("code")), error.at("message"));
  } else {
    const json& response = line.at("response");
    exchange.outcome = Response{response.at("status"), headers_from_json(response.at("headers")), response.at("body")};
  }
  return exchange;
}

std::size_t size_of(const RecordedExchange& exchange) {
  std::size_t size = exchange.request.body.size() + exchange.request.target.size();
  for (const std::string& piece : exchange.pieces) size += piece.size();
  return exchange.outcome.ok() ? size + exchange.outcome->body.size() : size;
}

class RecordingTransport final : public Transport {
 public:
  RecordingTransport(std::shared_ptr<Transport> inner, std::shared_ptr<Recording> recording)
      : inner_(std::move(inner)), recording_(std::move(recording)) {}

  Result<Response> send(const Request& request, std::chrono::milliseconds timeout, std::stop_token stop) override {
    auto response = inner_->send(request, timeout, std::move(stop));
    recording_->add({without_credentials(request), false, {}, response});
    return response;
  }

  Result<Response> stream(const Request& request, ByteSink& sink, std::chrono::milliseconds idle_limit,
                          std::stop_token stop) override {
    struct CopyingSink final : ByteSink {
      explicit CopyingSink(ByteSink& sink) : sink(sink) {}
      Result<void> on_bytes(std::string_view bytes) override {
        pieces.emplace_back(bytes);
        return sink.on_bytes(bytes);
      }
      ByteSink& sink;
      std::vector<std::string> pieces;
    } copying(sink);
    auto response = inner_->stream(request, copying, idle_limit, std::move(stop));
    recording_->add({without_credentials(request), true, std::move(copying.pieces), response});
    return response;
  }

 private:
  static Request without_credentials(Request request) {
    request.headers.erase("Authorization");
    return request;
  }

  const std::shared_ptr<Transport> inner_;
  const std::shared_ptr<Recording> recording_;
};

class ReplayingTransport final : public Transport {
 public:
  explicit ReplayingTransport(std::vector<RecordedExchange> exchanges) {
    for (auto& exchange : exchanges) exchanges_.emplace_back(std::move(exchange));
  }

  Result<Response> send(const Request& request, std::chrono::milliseconds, std::stop_token stop) override {
    if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
    SLUICE_TRY(RecordedExchange exchange, take(request, false));
    return std::move(exchange.outcome);
  }

  Result<Response> stream(const Request& request, ByteSink& sink, std::chrono::milliseconds,
                          std::stop_token stop) override {
    if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
    SLUICE_TRY(RecordedExchange exchange, take(request, true));
    if (!exchange.streamed && exchange.outcome.ok() && exchange.outcome->succeeded())
      exchange.pieces.push_back(std::exchange(exchange.outcome.value().body, {}));
    for (const std::string& piece : exchange.pieces) {
      if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
      SLUICE_TRY_VOID(sink.on_bytes(piece));
    }
    return std::move(exchange.outcome);
  }

 private:
  Result<RecordedExchange> take(const Request& request, bool streamed) {
    std::lock_guard lock(mutex_);
    for (auto& exchange : exchanges_) {
      if (!exchange || (exchange->streamed && !streamed)) continue;
      const Request& recorded = exchange->request;
      if (recorded.method != request.method || recorded.target != request.target || recorded.body != request.body)
        continue;
      RecordedExchange found = std::move(*exchange);
      exchange.reset();
      return found;
    }
    return internal_error("not recorded: " + request.method + " " + request.target);
  }

  std::mutex mutex_;
  std::vector<std::optional<RecordedExchange>> exchanges_;
};

}  // namespace

void Recording::add(RecordedExchange exchange) {
  const std::size_t size = size_of(exchange);
  std::lock_guard lock(mutex_);
  if (size > max_bytes_ - bytes_) {
    ++dropped_;
    return;
  }
  bytes_ += size;
  exchanges_.push_back(std::move(exchange));
}

std::vector<RecordedExchange> Recording::exchanges() const {
  std::lock_guard lock(mutex_);
  return exchanges_;
}

std::size_t Recording::dropped() const {
  std::lock_guard lock(mutex_);
  return dropped_;
}

std::string Recording::to_json_lines() const {
  std::string lines;
  for (const RecordedExchange& exchange : exchanges())
    lines += to_json(exchange).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  return lines;
}

Result<std::shared_ptr<Recording>> Recording::parse(std::string_view json_lines) {
  auto recording = std::make_shared<Recording>();
  for (int number = 1; !json_lines.empty(); ++number) {
    const std::size_t end = std::min(json_lines.find('\n'), json_lines.size());
    const std::string_view line = json_lines.substr(0, end);
    json_lines.remove_prefix(std::min(end + 1, json_lines.size()));
    if (line.empty()) continue;
    try {
      recording->add(from_json(json::parse(line)));
    } catch (const json::exception& exception) {
      return Error(ErrorCode::kDataLoss, "line " + std::to_string(number) + ": " + exception.what());
    }
  }
  return recording;
}

std::shared_ptr<Transport> with_recording(std::shared_ptr<Transport> inner, std::shared_ptr<Recording> recording) {
  return std::make_shared<RecordingTransport>(std::move(inner), std::move(recording));
}

std::shared_ptr<Transport> replay(const Recording& recording) {
  return std::make_shared<ReplayingTransport>(recording.exchanges());
}

}  // namespace sluice::http
