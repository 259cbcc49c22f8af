// Rule 14: pipelines whose batches mostly wait, by examples, and beside as many processes as torch would have, in
// virtual time.
#include <algorithm>
#include <cmath>
#include <map>

#include "src/base/testing/catch.h"
#include "src/executor/wait_share.h"
#include "worker-image/feeder/dispatch.h"
#include "worker-image/testing/dispatch_fixture.h"

namespace sluice::feeder {
namespace {

using namespace testing;
using Fixture = DispatchFixture;
using Text = std::vector<std::string>;

constexpr std::size_t kWaitingMax = 100;

struct Waiting : Fixture {
  explicit Waiting(std::size_t threads, double load, std::size_t requests_max = 8) : Fixture(threads) {
    dispatch.set_capacity(kLocal, threads, threads, kWaitingMax);
    dispatch.set_waits(kPipeline, load, requests_max);
  }
};

TEST_CASE("an executor holds as many requests that wait as fill its threads") {
  struct Case {
    const char* story;
    std::size_t threads;
    double load;
    std::size_t requests_max, held;
  };
  const Case cases[] = {{"they compute", 2, 1, 8, 2},
                        {"they sleep: as many as the loader has workers", 2, 0.01, 8, 8},
                        {"half of a thread each", 2, 0.5, 8, 4},
                        {"the last one need not fit", 2, 0.3, 8, 7},
                        {"more threads than workers", 12, 0.01, 8, 12},
                        {"no workers are known", 2, 0.01, 0, 2}};
  for (const Case& each : cases) {
    INFO(each.story);
    Waiting f(each.threads, each.load, each.requests_max);
    f.submit(kAlice, 20);
    CHECK(f.assign().size() == each.held);
    CHECK(f.assign().empty());
    f.answer(kLocal, 1);
    CHECK(f.assign().size() == 1);
  }
}

TEST_CASE("of all that wait an executor holds no more than it has room for") {
  Waiting f(2, 0.01, 50);
  f.dispatch.set_capacity(kLocal, 2, 2, 5);
  f.submit(kAlice, 20);
  CHECK(f.assign().size() == 7);
  f.dispatch.set_capacity(kLocal, 2, 2, 0);  // memory has become short
  for (RequestId id = 1; id <= 5; ++id) f.answer(kLocal, id);
  CHECK(f.assign().empty());
  f.answer(kLocal, 6);
  CHECK(f.assign().size() == 1);
}

TEST_CASE("requests that wait and those that compute take nothing from each other") {
  Waiting f(2, 0.01);
  f.submit(kAlice, 20);
  CHECK(f.assign().size() == 8);
  f.submit(kBob, 4, 1, kPipeline + 1);
  CHECK(f.assign() == Text{"21>0", "22>0"});
  f.answer(kLocal, 21);
  f.answer(kLocal, 1);
  CHECK(f.assign() == Text{"23>0", "9>0"});
}

TEST_CASE(
    "a pipeline that turns to waiting gets more at once; one that turns to computing gets none until few are left") {
  Waiting f(2, 1);
  f.submit(kAlice, 20);
  CHECK(f.assign().size() == 2);
  f.dispatch.set_waits(kPipeline, 0.01, 8);
  CHECK(f.assign().size() == 6);
  f.dispatch.set_waits(kPipeline, 1, 8);
  for (RequestId id = 1; id <= 6; ++id) f.answer(kLocal, id);
  CHECK(f.assign().empty());
  f.answer(kLocal, 7);
  CHECK(f.assign().size() == 1);
}

TEST_CASE("a data worker holds more requests that wait, if it knows of them") {
  Waiting f(1, 1);
  f.join(kWorker, 1, 2);
  f.submit(kAlice, 30);
  CHECK(f.assign().size() == 3);
  SECTION("it does not") {
    f.dispatch.set_waits(kPipeline, 0.01, 8);
    CHECK(f.assign().size() == 7);
    CHECK(f.dispatch.held_by(kWorker) == 2);
  }
  SECTION("it does") {
    f.dispatch.set_capacity(kWorker, 1, 2, kWaitingMax);
    f.dispatch.set_waits(kPipeline, 0.01, 8);
    CHECK(f.assign().size() == 13);
    CHECK(f.dispatch.held_by(kWorker) == 8);
  }
}

TEST_CASE("a client's share is of threads, not of requests that wait") {
  Waiting f(2, 0.01);
  f.dispatch.set_share(kAlice, 1);
  f.submit(kAlice, 20);
  CHECK(f.assign().size() == 8);
  Waiting computing(2, 1);
  computing.dispatch.set_share(kAlice, 1);
  computing.submit(kAlice, 20);
  CHECK(computing.assign().size() == 1);
}

TEST_CASE("virtual workers that wait are in the making together, each with one request") {
  Waiting f(1, 0.01);
  f.submit_for_virtual_workers(kAlice, 12, 4);
  CHECK(f.assign() == Text{"1>0", "2>0", "3>0", "4>0"});
  f.answer(kLocal, 2);
  CHECK(f.assign() == Text{"6>0"});
}

TEST_CASE("clients may ask for as many batches as can be in the making") {
  Waiting f(2, 1);
  CHECK(f.dispatch.credits() == 2);
  f.dispatch.set_waits(kPipeline, 0.25, 16);
  CHECK(f.dispatch.credits() == 8);
  f.dispatch.set_waits(kPipeline, 0.01, 16);
  CHECK(f.dispatch.credits() == 16);
  f.dispatch.set_capacity(kLocal, 2, 2, 3);
  CHECK(f.dispatch.credits() == 5);
  f.dispatch.forget_pipeline(kPipeline);
  CHECK(f.dispatch.credits() == 2);
}

// ---- beside torch, in virtual time ----

struct Data {
  const char* story;
  double cpu_seconds, wait_seconds;  // of a sample
  double other_cpu_seconds = -1;     // every other thirty batches
  double other_wait_seconds = 0;
};

// Batches of eight samples, each of which waits and then computes, on two cores that those in the making share.
class Machine {
 public:
  static constexpr double kCores = 2, kStepSeconds = 0.002;
  static constexpr std::size_t kSamples = 8;
  static constexpr std::uint64_t kBatches = 120;

  explicit Machine(const Data& data) : data_(data) {}

  void begin(std::uint64_t batch) { running_[batch] = next_sample(batch, 0); }
  std::size_t running() const { return running_.size(); }
  double seconds() const { return seconds_; }

  // One step. What has ended is told with its CPU and its waits.
  template <typename Ended>
  void advance(const Ended& ended) {
    seconds_ += kStepSeconds;
    const auto computing =
        std::count_if(running_.begin(), running_.end(), [](const auto& b) { return b.second.wait <= 0; });
    const double speed = std::min(1.0, kCores / static_cast<double>(std::max<std::ptrdiff_t>(1, computing)));
    for (auto batch = running_.begin(); batch != running_.end();) {
      const auto next = std::next(batch);
      Making& making = batch->second;
      (making.wait > 0 ? making.wait : making.cpu) -= making.wait > 0 ? kStepSeconds : kStepSeconds * speed;
      if (making.wait <= 0 && making.cpu <= 0) {
        if (making.sample + 1 < kSamples) {
          making = next_sample(batch->first, making.sample + 1);
        } else {
          const Making one = next_sample(batch->first, 0);
          const std::uint64_t number = batch->first;
          running_.erase(batch);
          ended(number, kSamples * one.cpu, kSamples * one.wait);
        }
      }
      batch = next;
    }
  }

 private:
  struct Making {
    std::size_t sample = 0;
    double cpu = 0, wait = 0;  // of this sample, left
  };

  Making next_sample(std::uint64_t batch, std::size_t sample) const {
    const bool other = data_.other_cpu_seconds >= 0 && batch / 30 % 2 == 1;
    return {sample, other ? data_.other_cpu_seconds : data_.cpu_seconds,
            other ? data_.other_wait_seconds : data_.wait_seconds};
  }

  const Data data_;
  double seconds_ = 0;
  std::map<std::uint64_t, Making> running_;
};

double torch_seconds(const Data& data, std::size_t workers) {
  Machine machine(data);
  std::uint64_t next = 0, ended = 0;
  while (ended < Machine::kBatches) {
    while (next < Machine::kBatches && machine.running() < workers) machine.begin(next++);
    machine.advance([&](std::uint64_t, double, double) { ++ended; });
  }
  return machine.seconds();
}

struct Ours {
  double seconds = 0;
  std::size_t most = 0;  // in the making at once
};

Ours our_seconds(const Data& data, std::size_t workers) {
  Machine machine(data);
  executor::WaitShare waits;
  Fixture f(2);
  f.dispatch.set_capacity(kLocal, 2, 2, kWaitingMax);
  f.submit(kAlice, Machine::kBatches);
  Ours ours;
  std::uint64_t ended = 0;
  bool changed = true;
  while (ended < Machine::kBatches) {
    f.now = Dispatch::TimePoint(std::chrono::microseconds(std::llround(1e6 * machine.seconds())));
    if (std::exchange(changed, false)) {
      for (const Assignment& started : f.dispatch.assign(f.now)) machine.begin(started.request - 1);
      ours.most = std::max(ours.most, machine.running());
    }
    machine.advance([&](std::uint64_t batch, double cpu, double wait) {
      f.dispatch.answer(kLocal, batch + 1, f.now);
      if (waits.observe(cpu, wait)) f.dispatch.set_waits(kPipeline, waits.load(), workers);
      changed = true;
      ++ended;
    });
  }
  ours.seconds = machine.seconds();
  return ours;
}

TEST_CASE("data that wait take as long as with torch's workers, and data that compute get no more than the cores") {
  const Data all[] = {{"sleeps", 0, 0.05},
                      {"reads a little", 0.02, 0.002},
                      {"reads as much as it computes", 0.01, 0.01},
                      {"reads more than it computes", 0.004, 0.02},
                      {"computes", 0.02, 0},
                      {"sleeps for a while, and computes", 0, 0.05, 0.02, 0},
                      {"computes for a while, and sleeps", 0.02, 0, 0.002, 0.05}};
  for (const Data& data : all) {
    for (const std::size_t workers : {2, 8, 16}) {
      INFO(data.story << ", " << workers << " workers");
      const Ours ours = our_seconds(data, workers);
      const double batch_seconds = Machine::kSamples * (data.cpu_seconds + data.wait_seconds);
      const double turns = data.other_cpu_seconds < 0 ? 1 : 4;  // what is known says nothing of what follows
      CHECK(ours.seconds <= 1.02 * torch_seconds(data, workers) + 6 * turns * batch_seconds);
      CHECK(ours.most <= std::max<std::size_t>(2, workers));
      if (data.wait_seconds == 0 && data.other_cpu_seconds < 0) CHECK(ours.most == 2);
    }
  }
}

}  // namespace
}  // namespace sluice::feeder
