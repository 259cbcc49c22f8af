#include "src/http/faults.h"

#include "src/base/testing/catch.h"
#include "src/http/testing/scripted_transport.h"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::ScriptedTransport;

// Sleeping is what moves it: a simulation's clock, in short.
class SteppingClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(elapsed_); }
  WallTimePoint wall_now() const override { return {}; }
  bool sleep_until(TimePoint deadline, std::stop_token stop) const override {
    if (stop.stop_requested()) return false;
    elapsed_ = std::max(elapsed_, deadline.time_since_epoch());
    return true;
  }

 private:
  mutable Duration elapsed_{0};
};

TEST_CASE("what the client gets, what the server sees and what time passes, for each fault") {
  struct Case {
    const char* why;
    Fault fault;
    int want_status;  // 0: want_error
    ErrorCode want_error;
    std::size_t want_seen;
    std::chrono::milliseconds want_passed;
  };
  const Case cases[] = {
      {"no fault", {}, 200, ErrorCode::kInternal, 1, 0ms},
      {"lost on the way", {.delay_before = 3ms, .lose_request = true}, 0, ErrorCode::kUnavailable, 0, 3ms},
      {"refused", {.refuse = Response{429, {}, ""}}, 429, ErrorCode::kInternal, 0, 0ms},
      {"sent twice", {.repeat = true}, 200, ErrorCode::kInternal, 2, 0ms},
      {"delayed", {.delay_before = 3ms, .delay_after = 4ms}, 200, ErrorCode::kInternal, 1, 7ms},
      {"answer lost", {.lose_answer = true}, 0, ErrorCode::kDeadlineExceeded, 1, 0ms},
      {"answered by a proxy", {.replace_answer = Response{502, {}, ""}}, 502, ErrorCode::kInternal, 1, 0ms},
      {"too slow to arrive", {.delay_before = 2s}, 0, ErrorCode::kDeadlineExceeded, 0, 1s},
      {"too slow to come back", {.delay_after = 2s}, 0, ErrorCode::kDeadlineExceeded, 1, 1s},
  };
  for (const Case& c : cases) {
    INFO(c.why);
    SteppingClock clock;
    const auto server = std::make_shared<ScriptedTransport>();
    for (int i = 0; i < 2; ++i) server->answer(200, "done");
    const auto transport = with_faults(server, clock, [&](const Request&) { return c.fault; });
    const auto response = transport->send({"PATCH", "/x"}, 1s, {});
    CHECK(response.ok() == (c.want_status != 0));
    if (response.ok()) CHECK(response->status == c.want_status);
    if (!response.ok()) CHECK(response.error().code() == c.want_error);
    CHECK(server->requests().size() == c.want_seen);
    CHECK(clock.now() - Clock::TimePoint() == c.want_passed);
  }
}

TEST_CASE("a stop request ends a delay") {
  SteppingClock clock;
  const auto transport = with_faults(std::make_shared<ScriptedTransport>(), clock,
                                     [](const Request&) { return Fault{.delay_before = 1ms}; });
  std::stop_source stop;
  stop.request_stop();
  CHECK(transport->send({}, 1s, stop.get_token()).error().code() == ErrorCode::kCancelled);
}

}  // namespace
}  // namespace sluice::http
