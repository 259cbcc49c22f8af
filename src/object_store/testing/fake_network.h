// A network without threads, in virtual time: a test answers the requests, and run() calls back.
#pragma once

#include <deque>
#include <map>
#include <utility>

#include "src/base/testing/manual_clock.h"
#include "src/object_store/network.h"

namespace sluice::object_store::testing {

// Thread safety: none.
class FakeNetwork final : public Network {
 public:
  struct Pending {
    HttpRequest request;
    Done done;
  };

  explicit FakeNetwork(sluice::testing::ManualClock& clock) : clock_(clock) {}

  void ask(HttpRequest request, Done done) override { pending.push_back({std::move(request), std::move(done)}); }
  void after(Clock::Duration wait, std::function<void()> then) override {
    timers_.emplace(clock_.now() + wait, std::move(then));
  }
  void post(std::function<void()> work) override { posted_.push_back(std::move(work)); }
  void end() override {
    pending.clear();
    timers_.clear();
    posted_.clear();
  }

  // Everything that is due now.
  void run() {
    while (!posted_.empty()) {
      const auto work = std::move(posted_.front());
      posted_.pop_front();
      work();
    }
  }

  void answer(Result<HttpAnswer> result) {
    Pending first = std::move(pending.front());
    pending.pop_front();
    first.done(std::move(result));
    run();
  }

  // The next timer's moment comes. The seconds until then; 0: there is none.
  double pass() {
    if (timers_.empty()) return 0;
    auto first = timers_.extract(timers_.begin());
    const auto wait = std::max(Clock::Duration(0), first.key() - clock_.now());
    clock_.advance(wait);
    first.mapped()();
    run();
    return std::chrono::duration<double>(wait).count();
  }

  std::deque<Pending> pending;  // what has been asked for, oldest first

 private:
  sluice::testing::ManualClock& clock_;
  std::multimap<Clock::TimePoint, std::function<void()>> timers_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace sluice::object_store::testing
