#include "src/http/faults.h"

#include <algorithm>
#include <utility>

namespace sluice::http {
namespace {

class FaultyTransport final : public Transport {
 public:
  FaultyTransport(std::shared_ptr<Transport> inner, const Clock& clock, FaultPlan plan)
      : inner_(std::move(inner)), clock_(clock), plan_(std::move(plan)) {}

  Result<Response> send(const Request& request, std::chrono::milliseconds timeout, std::stop_token stop) override {
    const Fault fault = plan_(request);
    const Clock::TimePoint deadline = clock_.now() + timeout;
    SLUICE_TRY_VOID(pass(fault.delay_before, deadline, stop));
    if (fault.lose_request) return unavailable("the request was lost");
    if (fault.refuse) return *fault.refuse;
    Result<Response> response = inner_->send(request, left_until(deadline), stop);
    if (fault.repeat) response = inner_->send(request, left_until(deadline), stop);
    SLUICE_TRY_VOID(pass(fault.delay_after, deadline, stop));
    if (fault.lose_answer) return Error(ErrorCode::kDeadlineExceeded, "the answer was lost");
    if (fault.replace_answer) return *fault.replace_answer;
    return response;
  }

  Result<Response> stream(const Request& request, ByteSink& sink, std::chrono::milliseconds idle_limit,
                          std::stop_token stop) override {
    return inner_->stream(request, sink, idle_limit, std::move(stop));
  }

 private:
  std::chrono::milliseconds left_until(Clock::TimePoint deadline) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock_.now());
    return std::max(left, std::chrono::milliseconds(1));
  }

  Result<void> pass(std::chrono::milliseconds delay, Clock::TimePoint deadline, const std::stop_token& stop) const {
    if (delay.count() <= 0) return {};
    const Clock::TimePoint until = clock_.now() + delay;
    if (!clock_.sleep_until(std::min(until, deadline), stop)) return Error(ErrorCode::kCancelled, "stopped");
    return until < deadline ? Result<void>() : Error(ErrorCode::kDeadlineExceeded, "no answer in time");
  }

  const std::shared_ptr<Transport> inner_;
  const Clock& clock_;
  const FaultPlan plan_;
};

}  // namespace

std::shared_ptr<Transport> with_faults(std::shared_ptr<Transport> inner, const Clock& clock, FaultPlan plan) {
  return std::make_shared<FaultyTransport>(std::move(inner), clock, std::move(plan));
}

}  // namespace sluice::http
