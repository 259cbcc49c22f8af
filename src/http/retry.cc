#include "src/http/retry.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace sluice::http {
namespace {

// How long the server asks us to wait; nullopt when it does not ask. Only whole seconds are used by API servers.
std::optional<std::chrono::seconds> retry_after(const Response& response) {
  if (response.status != 429 && response.status < 500) return std::nullopt;
  const auto header = response.headers.find("Retry-After");
  if (header == response.headers.end()) return std::nullopt;
  int seconds = 0;
  const std::string& text = header->second;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (parsed.ec != std::errc() || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

class RetryingTransport final : public Transport {
 public:
  RetryingTransport(std::shared_ptr<Transport> inner, const Clock& clock, const RetryOptions& options)
      : inner_(std::move(inner)), clock_(clock), options_(options) {}

  Result<Response> send(const Request& request, std::chrono::milliseconds timeout, std::stop_token stop) override {
    for (int retries = 0;; ++retries) {
      Result<Response> response = inner_->send(request, timeout, stop);
      if (!response.ok() || retries >= options_.max_retries) return response;
      const auto wait = retry_after(*response);
      if (!wait) return response;
      if (!clock_.sleep_for(std::min(*wait, options_.max_wait), stop)) return Error(ErrorCode::kCancelled, "stopped");
    }
  }

  Result<Response> stream(const Request& request, ByteSink& sink, std::chrono::milliseconds idle_limit,
                          std::stop_token stop) override {
    return inner_->stream(request, sink, idle_limit, std::move(stop));
  }

 private:
  const std::shared_ptr<Transport> inner_;
  const Clock& clock_;
  const RetryOptions options_;
};

}  // namespace

std::shared_ptr<Transport> with_retries(std::shared_ptr<Transport> inner, const Clock& clock,
                                        const RetryOptions& options) {
  return std::make_shared<RetryingTransport>(std::move(inner), clock, options);
}

}  // namespace sluice::http
