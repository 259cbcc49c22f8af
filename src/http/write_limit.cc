#include "src/http/write_limit.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace sluice::http {
namespace {

class WriteLimitedTransport final : public Transport {
 public:
  WriteLimitedTransport(std::shared_ptr<Transport> inner, int max_in_flight)
      : inner_(std::move(inner)), free_(max_in_flight) {}

  Result<Response> send(const Request& request, std::chrono::milliseconds timeout, std::stop_token stop) override {
    if (request.method == "GET" || request.method == "HEAD") return inner_->send(request, timeout, std::move(stop));
    // Real time, as the timeout itself: see Transport.
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    {
      std::unique_lock lock(mutex_);
      const bool got = changed_.wait_until(lock, stop, deadline, [this] { return free_ > 0; });
      if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
      if (!got) return Error(ErrorCode::kDeadlineExceeded, "too many writes on their way; this one was not sent");
      --free_;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    auto response = inner_->send(request, std::max(left, std::chrono::milliseconds(1)), std::move(stop));
    {
      std::lock_guard lock(mutex_);
      ++free_;
    }
    changed_.notify_one();
    return response;
  }

  Result<Response> stream(const Request& request, ByteSink& sink, std::chrono::milliseconds idle_limit,
                          std::stop_token stop) override {
    return inner_->stream(request, sink, idle_limit, std::move(stop));
  }

 private:
  const std::shared_ptr<Transport> inner_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  int free_;
};

}  // namespace

std::shared_ptr<Transport> with_write_limit(std::shared_ptr<Transport> inner, int max_in_flight) {
  return std::make_shared<WriteLimitedTransport>(std::move(inner), max_in_flight);
}

}  // namespace sluice::http
