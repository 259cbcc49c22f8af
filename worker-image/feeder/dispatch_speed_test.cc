// How long a training loop takes with executors of all kinds, beside the feeder alone: Dispatch with virtual executors
// in virtual time. The loop gets its batches in order and asks for as many ahead as the window allows.
#include <cmath>
#include <deque>
#include <functional>

#include "src/base/testing/catch.h"
#include "worker-image/feeder/dispatch.h"
#include "worker-image/feeder/window.h"

namespace sluice::feeder {
namespace {

using std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;

constexpr milliseconds kStep{2};
constexpr milliseconds kLook{50};                   // as the feeder looks
constexpr milliseconds kHello{10}, kGivenUp{4500};  // a worker joins; one that stands still is given up
constexpr double kBatchSeconds = 0.1;               // of the feeder's own threads
constexpr std::size_t kRaceBatches = 300;

// When an executor works; the rest of the time it stands still, or is gone.
using Schedule = std::function<bool(double seconds)>;

bool always(double) { return true; }
// Works `on` seconds, then not for `off` seconds, and so on.
Schedule in_turns(double on, double off) {
  return [=](double seconds) { return std::fmod(seconds, on + off) < on; };
}

struct Kind {
  double batch_seconds = kBatchSeconds;
  std::size_t threads = 1;
  bool shares = false;         // all its threads make the oldest batch
  Schedule works = always;     // else it stands still, as under SIGSTOP
  Schedule is_there = always;  // else its process is gone with what it held
};

class Site {
 public:
  Site(double loop_seconds, std::vector<Kind> kinds) : loop_seconds_(loop_seconds), kinds_(std::move(kinds)) {
    dispatch_.add_client(1);
    executors_.resize(kinds_.size());
    executors_[0].id = kLocalExecutor;
    dispatch_.add_executor(kLocalExecutor, kinds_[0].threads, kinds_[0].threads);
  }

  // Seconds until the loop has had every batch.
  double run() {
    while (consumed_ < kRaceBatches) {
      now_ += kStep;
      if (now_ > Dispatch::TimePoint(std::chrono::minutes(10))) return INFINITY;
      for (std::size_t i = 0; i < kinds_.size(); ++i) advance(i);
      train();
      if (std::exchange(changed_, false) || now_.time_since_epoch() % kLook == milliseconds(0)) assign();
    }
    return seconds();
  }

  double longest_wait_seconds() const { return longest_wait_; }
  std::size_t hedges() const { return hedges_; }
  std::size_t probes() const { return probes_; }
  std::size_t made_by(std::size_t kind) const { return executors_[kind].made; }

 private:
  struct Job {
    RequestId request = 0;
    double left_seconds = 0;
    bool cancelled = false;
  };
  struct Executor {
    ExecutorId id = 0;        // 0 for those that are not there, but for the local one
    std::deque<Job> jobs;     // the first ones are on the threads
    Clock::Duration still{};  // for how long it has stood still
    Clock::Duration here{};   // since it came
    std::size_t made = 0;
  };

  double seconds() const { return Seconds(now_.time_since_epoch()).count(); }

  void advance(std::size_t i) {
    const Kind& kind = kinds_[i];
    Executor& executor = executors_[i];
    if (i > 0 && !come_or_go(kind, executor)) return;
    if (!kind.works(seconds())) {
      executor.still += kStep;
      if (i > 0 && executor.still > kGivenUp) leave(executor);
      return;
    }
    executor.still = {};
    std::size_t free_threads = kind.threads;
    for (auto job = executor.jobs.begin(); job != executor.jobs.end() && free_threads > 0;) {
      const std::size_t threads = kind.shares ? free_threads : 1;
      // A cancelled batch ends with the sample that is being made.
      if (job->cancelled) job->left_seconds = std::min(job->left_seconds, kind.batch_seconds / 64);
      job->left_seconds -= static_cast<double>(threads) * Seconds(kStep).count();
      free_threads -= threads;
      if (job->left_seconds > 1e-9) {
        ++job;
        continue;
      }
      // Of the step that its last threads did not need, the next batch gets none: less than one step for each batch.
      finish(executor, *job);
      job = executor.jobs.erase(job);
    }
  }

  // Whether it is there and has said hello.
  bool come_or_go(const Kind& kind, Executor& executor) {
    if (!kind.is_there(seconds())) {
      if (executor.id != 0) leave(executor);
      executor.here = {};
      return false;
    }
    executor.here += kStep;
    if (executor.id != 0 || executor.here < kHello || !kind.works(seconds())) return executor.id != 0;
    executor.id = next_executor_++;
    dispatch_.add_executor(executor.id, kind.threads, 2 * kind.threads);
    dispatch_.allow(executor.id, 1);
    changed_ = true;
    return true;
  }

  void leave(Executor& executor) {
    dispatch_.remove_executor(executor.id);
    executor.id = 0;
    executor.jobs.clear();
    changed_ = true;
  }

  void finish(Executor& executor, const Job& job) {
    changed_ = true;
    if (job.cancelled) {
      dispatch_.fail(executor.id, job.request, true);
      return;
    }
    const Answer answer = dispatch_.answer(executor.id, job.request, now_);
    if (answer.kind != AnswerKind::kFirst) return;
    ready_.insert(job.request);
    ++executor.made;
    for (const ExecutorId slower : answer.overtaken) {
      for (Executor& other : executors_) {
        if (other.id != slower) continue;
        for (Job& held : other.jobs) held.cancelled |= held.request == job.request;
      }
    }
  }

  void train() {
    if (computing_left_ > 1e-9) {
      computing_left_ -= Seconds(kStep).count();
      waited_ = 0;
    } else if (ready_.erase(consumed_ + 1) > 0) {
      ++consumed_;
      computing_left_ = loop_seconds_;
      waited_ = 0;
    } else {
      waited_ += Seconds(kStep).count();
      longest_wait_ = std::max(longest_wait_, waited_);
    }
    const std::size_t window =
        window_batches({.credits = dispatch_.credits(), .arena_bytes = std::size_t{1} << 30, .batch_bytes = 1 << 20});
    while (submitted_ < kRaceBatches && submitted_ - consumed_ < window) {
      dispatch_.submit(1, 1, 1, ++submitted_, 64, std::nullopt, kinds_[0].shares ? kinds_[0].threads : 1);
      changed_ = true;
    }
    if (now_.time_since_epoch() % std::chrono::seconds(1) == milliseconds(0))
      dispatch_.set_pace(1, 1, consumed_, loop_seconds_, now_);
  }

  void assign() {
    for (const Assignment& assignment : dispatch_.assign(now_)) {
      hedges_ += assignment.kind == AttemptKind::kHedge;
      probes_ += assignment.kind == AttemptKind::kProbe;
      for (std::size_t i = 0; i < kinds_.size(); ++i) {
        if (executors_[i].id == assignment.executor && (i == 0 || assignment.executor != kLocalExecutor))
          executors_[i].jobs.push_back({assignment.request, kinds_[i].batch_seconds, false});
      }
    }
  }

  const double loop_seconds_;
  const std::vector<Kind> kinds_;
  Dispatch dispatch_;
  std::vector<Executor> executors_;
  Dispatch::TimePoint now_{};
  ExecutorId next_executor_ = 1;
  std::set<std::size_t> ready_;
  std::size_t submitted_ = 0, consumed_ = 0, hedges_ = 0, probes_ = 0;
  double computing_left_ = 0, waited_ = 0, longest_wait_ = 0;
  bool changed_ = true;
};

TEST_CASE("no executor beside the feeder makes a training loop slower", "[one thread]") {
  const Kind same{}, slow{10 * kBatchSeconds}, slowest{50 * kBatchSeconds};
  const Kind stopping{kBatchSeconds, 2, false, in_turns(3, 2)};
  const Kind stopping_slow{10 * kBatchSeconds, 2, false, in_turns(3, 2)};
  const Kind stopped{kBatchSeconds, 2, false, [](double seconds) { return seconds < 5; }};
  const Kind leaving{kBatchSeconds, 2, false, always, in_turns(1, 0.5)};
  const Kind leaving_slow{10 * kBatchSeconds, 2, false, always, in_turns(1, 0.5)};
  const Kind wide_slow{10 * kBatchSeconds, 16};
  struct Case {
    const char* name;
    std::vector<Kind> others;
  };
  const Case cases[] = {
      {"as fast", {same}},
      {"ten times slower", {slow}},
      {"fifty times slower", {slowest}},
      {"eight that are fifty times slower", std::vector<Kind>(8, slowest)},
      {"one that is ten times slower, with sixteen threads", {wide_slow}},
      {"as fast, ten and fifty times slower", {same, slow, slowest}},
      {"stops for two seconds of five", {stopping}},
      {"is slow and stops for two seconds of five", {stopping_slow}},
      {"stops for ever", {stopped}},
      {"leaves each second", {leaving}},
      {"is slow and leaves each second", {leaving_slow}},
      {"all of them", {same, slow, slowest, stopping, stopping_slow, stopped, leaving, leaving_slow}},
      {"many slow ones that come and go", std::vector<Kind>(12, leaving_slow)},
  };
  const auto loop_seconds = GENERATE(0.0, 0.046, 0.2);
  const std::size_t threads = GENERATE(1u, 2u, 8u);
  const bool shares = GENERATE(false, true);  // native batches, or Python ones
  if (shares && threads == 1) return;
  const Kind local{kBatchSeconds, threads, shares};
  const double alone = Site(loop_seconds, {local}).run();
  for (const Case& test : cases) {
    INFO(test.name << ", loop " << loop_seconds << " s, " << threads << " threads" << (shares ? " that share" : ""));
    std::vector<Kind> kinds = {local};
    kinds.insert(kinds.end(), test.others.begin(), test.others.end());
    Site site(loop_seconds, kinds);
    const double together = site.run();
    CHECK(together <= 1.02 * alone + kBatchSeconds);
    CHECK(static_cast<double>(site.hedges()) <= 0.1 * kRaceBatches);
  }
}

TEST_CASE("what other executors can add is used", "[one thread]") {
  struct Case {
    const char* name;
    Kind other;
    double speedup;
  };
  const Case cases[] = {
      {"as fast", {}, 2},
      {"sixteen threads that are ten times slower", {10 * kBatchSeconds, 16}, 2.6},
      {"as fast, two threads of which the process leaves for a third of the time",
       {kBatchSeconds, 2, false, always, in_turns(1, 0.5)},
       2.33},
  };
  const double alone = Site(0, {Kind{}}).run();
  for (const Case& test : cases) {
    INFO(test.name);
    CHECK(Site(0, {Kind{}, test.other}).run() <= 1.15 * alone / test.speedup);
  }
}

TEST_CASE("when the only fast executor stops, the next batch comes within a second", "[one thread]") {
  const double slow_seconds = 3 * kBatchSeconds;
  for (const double stops : {1.3, 5.0, 5.5, 8.01}) {
    INFO("stops after " << stops << " s");
    const Kind fast{kBatchSeconds / 2, 2, false, [=](double seconds) { return seconds < stops; }};
    Site site(0, {Kind{slow_seconds}, fast});
    CHECK(site.run() <= kRaceBatches * slow_seconds);
    CHECK(site.longest_wait_seconds() <= 1);
  }
}

}  // namespace
}  // namespace sluice::feeder
