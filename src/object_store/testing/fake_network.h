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
    int number;
    HttpRequest request;
    Done done;
  };

  explicit FakeNetwork(sluice::testing::ManualClock& clock) : clock_(clock) {}

  Cancel ask(HttpRequest request, Done done) override {
    const int number = asked++;
    pending.push_back({number, std::move(request), std::move(done)});
    return [this, number] {
      cancelled += static_cast<int>(std::erase_if(pending, [&](const Pending& each) { return each.number == number; }));
    };
  }
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

  // To the oldest one, or another.
  void answer(Result<HttpAnswer> result, std::size_t place = 0) {
    const auto answered = pending.begin() + static_cast<std::ptrdiff_t>(place);
    const Done done = std::move(answered->done);
    pending.erase(answered);
    done(std::move(result));
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

  // Until no timer is left.
  void pass_all() {
    while (!timers_.empty()) pass();
  }

  std::deque<Pending> pending;  // what has been asked for, oldest first
  int asked = 0;
  int cancelled = 0;

 private:
  sluice::testing::ManualClock& clock_;
  std::multimap<Clock::TimePoint, std::function<void()>> timers_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace sluice::object_store::testing
