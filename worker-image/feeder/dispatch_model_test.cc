// Every order of events that a small world allows, up to a number of events: two streams, the local thread, two
// workers, one of which joins on the way; from the beginning of a job, and from its middle, where all three were
// measured; from there with a virtual worker that makes the batches of one stream, portable or not; and from a
// beginning at which the local executor must load the pipeline. States that were seen before are not gone through
// again. From every state, executors that answer what they hold bring everything to its end.
#include <algorithm>
#include <deque>

#include "src/base/testing/catch.h"
#include "worker-image/feeder/dispatch.h"

namespace sluice::feeder {
namespace {

// All orders of so many events. One more takes four times as long: ThreadSanitizer's optimised build has the time,
// AddressSanitizer's has not.
#ifdef __OPTIMIZE__
constexpr std::size_t kEvents = 6;
#else
constexpr std::size_t kEvents = 5;
#endif
constexpr ExecutorId kFirst = 1, kSecond = 2;
constexpr std::size_t kCredits[] = {1, 2, 1};

struct Held {
  ExecutorId executor = 0;
  RequestId request = 0;
  auto operator<=>(const Held&) const = default;
};

struct ModelState {
  Dispatch dispatch;
  std::vector<Held> running;  // what executors work on
  std::vector<Held> late;     // what executors that were lost, or refused a pipeline, may still answer
  std::set<ExecutorId> here = {kLocalExecutor};
  std::set<ExecutorId> draining;
  std::set<ExecutorId> gone;
  bool refused = false;   // the second worker, a pipeline
  bool sticky = false;    // a virtual worker makes the batches of stream 1
  bool portable = false;  // it may have its home anywhere
  bool loaded = true;     // the pipeline, at the local executor
  bool loading = false;
  std::set<RequestId> settled, cancelled;
  std::set<AttemptKind> started;  // by the last event
  RequestId submitted = 0, requests = 4;
  PipelineNumber pipeline = 1;
  Dispatch::TimePoint now{};
  std::string wrong;  // the first thing that should never be

  auto operator<=>(const ModelState&) const = default;

  ModelState() {
    dispatch.add_client(1);
    dispatch.add_executor(kLocalExecutor, 1, kCredits[kLocalExecutor]);
    join(kFirst);
  }

  static ModelState that_loads() {
    ModelState world;
    world.dispatch.set_loaded(kLocalExecutor, world.pipeline, false, world.now);
    world.loaded = false;
    for (RequestId i = 0; i < 3; ++i) world.submit();
    world.assign();
    return world;
  }

  static ModelState in_the_middle(bool sticky = false, bool portable = false) {
    ModelState world;
    world.sticky = sticky;
    world.portable = portable;
    world.join(kSecond);
    for (RequestId i = 0; i < 4; ++i) world.submit();
    world.run_out();
    for (RequestId i = 0; i < 3; ++i) world.submit();
    world.assign();
    world.requests = world.submitted + 1;
    return world;
  }

  void join(ExecutorId worker) {
    dispatch.add_executor(worker, 1, kCredits[worker]);
    for (const PipelineNumber number : {1, 2}) dispatch.allow(worker, number);
    here.insert(worker);
  }
  void submit() {
    ++submitted;
    std::optional<VirtualWorker> virtual_worker;
    if (is_sticky(submitted)) virtual_worker = VirtualWorker{0, portable};
    dispatch.submit(1, stream_of(submitted), pipeline, submitted, 1, virtual_worker);
  }

  static StreamId stream_of(RequestId request) { return 1 + request % 2; }
  bool is_sticky(RequestId request) const { return sticky && stream_of(request) == 1; }
  bool is_open(RequestId request) const {
    return request <= submitted && !settled.contains(request) && !cancelled.contains(request);
  }
  void expect(bool holds, const char* what) {
    if (!holds && wrong.empty()) wrong = what;
  }

  void assign() {
    started.clear();
    for (const Assignment& assignment : dispatch.assign(now)) {
      const Held held{assignment.executor, assignment.request};
      expect(here.contains(held.executor) && !draining.contains(held.executor),
             "work for an executor that is not there");
      expect(is_open(held.request), "work on a request that has its answer");
      expect(std::find(running.begin(), running.end(), held) == running.end(), "twice at one executor");
      if (is_sticky(held.request)) {
        expect(portable || held.executor == kLocalExecutor, "a virtual worker's batch for a data worker");
        expect(assignment.kind == AttemptKind::kFirst, "a virtual worker's batch at two executors");
        for (RequestId older = 1; older < held.request; ++older)
          expect(!is_sticky(older) || !is_open(older), "a virtual worker's batch before an older one");
      }
      running.push_back(held);
      started.insert(assignment.kind);
      const auto attempts = std::count_if(running.begin(), running.end(),
                                          [&](const Held& other) { return other.request == held.request; });
      expect(attempts <= 4, "more than two attempts, a local one and a probe");
      expect(assignment.kind != AttemptKind::kFirst || attempts == 1, "a first attempt that is none");
      const bool waits = held.executor == kLocalExecutor && loading;
      expect(dispatch.held_by(held.executor) <= kCredits[held.executor] + waits, "more than its credits");
    }
    for (const ExecutorId executor : here) {
      const auto held = static_cast<std::size_t>(
          std::count_if(running.begin(), running.end(), [&](const Held& h) { return h.executor == executor; }));
      expect(dispatch.held_by(executor) == held, "credits are counted wrongly");
      expect(executor != kLocalExecutor || loaded || held <= 1, "two requests wait for one load");
    }
  }

  void settle(RequestId request, bool told) {
    if (!told) return;
    expect(is_open(request), "a client was told twice, or what it had cancelled");
    settled.insert(request);
  }
  void answer(const Held& held) {
    const Answer answer = dispatch.answer(held.executor, held.request, now);
    if (held.executor == kLocalExecutor) loaded = true;
    for (const ExecutorId slower : answer.overtaken)
      expect(std::find(running.begin(), running.end(), Held{slower, held.request}) != running.end(),
             "told an executor that has nothing");
    settle(held.request, answer.kind == AnswerKind::kFirst);
  }
  void fail(const Held& held) {
    settle(held.request, dispatch.fail(held.executor, held.request, true).kind == FailureKind::kFinal);
  }
  void move_to_late(ExecutorId executor) {
    std::erase_if(running, [&](const Held& held) {
      if (held.executor == executor) late.push_back(held);
      return held.executor == executor;
    });
  }

  // All answer what they hold, the time that takes passing, until nothing is left.
  void run_out() {
    for (int round = 0; round < 100 && (!running.empty() || dispatch.pending() > 0); ++round) {
      now += std::chrono::seconds(1);
      for (const Held& held : std::vector<Held>(running)) {
        std::erase(running, held);
        answer(held);
      }
      assign();
    }
    expect(dispatch.pending() == 0 && running.empty() && dispatch.outstanding() == 0, "it never ends");
    for (RequestId request = 1; request <= submitted; ++request) expect(!is_open(request), "a request without answer");
  }
};

using Successors = std::vector<std::pair<std::string, ModelState>>;

template <typename Event>
void happen(const ModelState& world, Successors& next, const std::string& name, Event event) {
  ModelState after = world;
  event(after);
  after.assign();
  next.emplace_back(name, std::move(after));
}

std::string name(const char* event, const Held& held) {
  return event + std::to_string(held.request) + "@" + std::to_string(held.executor);
}

void worker_events(const ModelState& world, ExecutorId worker, Successors& next) {
  const std::string number = std::to_string(worker);
  if (!world.here.contains(worker)) {
    if (world.gone.contains(worker)) return;
    return happen(world, next, "join" + number, [&](ModelState& w) { w.join(worker); });
  }
  happen(world, next, "lose" + number, [&](ModelState& w) {
    w.dispatch.remove_executor(worker);
    w.here.erase(worker);
    w.draining.erase(worker);
    w.gone.insert(worker);
    w.move_to_late(worker);
  });
  if (worker == kSecond && !world.refused) {
    happen(world, next, "refuse" + number, [&](ModelState& w) {
      w.dispatch.exclude(worker, w.pipeline);
      w.refused = true;
      std::erase_if(w.running, [&](const Held& held) {
        const bool given_back = held.executor == worker && w.is_open(held.request);
        if (given_back) w.late.push_back(held);
        return given_back;
      });
    });
  }
  if (!world.draining.contains(worker)) {
    happen(world, next, "drain" + number, [&](ModelState& w) {
      w.dispatch.drain(worker);
      w.draining.insert(worker);
    });
  }
}

void load_events(const ModelState& world, Successors& next) {
  if (world.loading) {
    for (const bool is_loaded : {true, false}) {
      happen(world, next, is_loaded ? "loaded" : "not loaded", [is_loaded](ModelState& w) {
        w.loading = false;
        w.loaded = w.loaded || is_loaded;
        w.dispatch.set_loading(kLocalExecutor, 0);
        w.dispatch.set_loaded(kLocalExecutor, w.pipeline, w.loaded, w.now);
      });
    }
  } else if (!world.loaded && world.dispatch.held_by(kLocalExecutor) > 0) {
    happen(world, next, "load", [](ModelState& w) {
      w.loading = true;
      w.dispatch.set_loading(kLocalExecutor, 1);
    });
  }
}

Successors successors(const ModelState& world) {
  Successors next;
  load_events(world, next);
  if (world.submitted < world.requests) {
    happen(world, next, "submit", [](ModelState& w) { w.submit(); });
  }
  happen(world, next, "time", [](ModelState& w) { w.now += std::chrono::seconds(1); });
  for (std::size_t i = 0; i < world.running.size(); ++i) {
    const Held held = world.running[i];
    happen(world, next, name("answer", held), [&](ModelState& w) {
      w.running.erase(w.running.begin() + static_cast<std::ptrdiff_t>(i));
      w.answer(held);
    });
    happen(world, next, name("fail", held), [&](ModelState& w) {
      w.running.erase(w.running.begin() + static_cast<std::ptrdiff_t>(i));
      w.fail(held);
    });
  }
  for (std::size_t i = 0; i < world.late.size(); ++i) {
    happen(world, next, name("late", world.late[i]), [&](ModelState& w) {
      w.late.erase(w.late.begin() + static_cast<std::ptrdiff_t>(i));
      w.answer(world.late[i]);
    });
  }
  worker_events(world, kFirst, next);
  worker_events(world, kSecond, next);
  if (world.cancelled.empty() && world.submitted > 0) {
    happen(world, next, "cancel", [](ModelState& w) {
      for (RequestId request = 1; request <= w.submitted; ++request) {
        if (ModelState::stream_of(request) == 2 && w.is_open(request)) w.cancelled.insert(request);
      }
      w.dispatch.cancel_stream(1, 2);
    });
  }
  const bool any_open = world.submitted > world.settled.size() + world.cancelled.size();
  if (world.pipeline == 1 && world.submitted > 0 && !any_open) {
    happen(world, next, "forget", [](ModelState& w) {
      w.dispatch.forget_pipeline(1);
      w.pipeline = 2;
      w.loaded = true;
    });
  }
  return next;
}

TEST_CASE("no order of events breaks a rule or leaves a request without its answer", "[one thread]") {
  std::set<ModelState> seen;
  std::deque<std::pair<ModelState, std::string>> todo;  // with the events that led there
  std::map<AttemptKind, std::size_t> started;
  todo.emplace_back(ModelState(), "");
  todo.emplace_back(ModelState::that_loads(), " loads:");
  todo.emplace_back(ModelState::in_the_middle(), " middle:");
  todo.emplace_back(ModelState::in_the_middle(true), " sticky:");
  todo.emplace_back(ModelState::in_the_middle(true, true), " portable:");
  for (std::size_t events = 0; events < kEvents; ++events) {
    for (std::size_t left = todo.size(); left > 0; --left) {
      const auto [world, path] = std::move(todo.front());
      todo.pop_front();
      for (auto& [event, after] : successors(world)) {
        if (!seen.insert(after).second) continue;
        for (const AttemptKind kind : after.started) ++started[kind];
        ModelState end = after;
        end.run_out();
        if (!end.wrong.empty()) FAIL(end.wrong << " after" << path << " " << event);
        todo.emplace_back(std::move(after), path + " " + event);
      }
    }
  }
  CAPTURE(seen.size());
  CHECK(seen.size() > 20000);
  for (const AttemptKind kind : {AttemptKind::kFirst, AttemptKind::kHedge, AttemptKind::kProbe})
    CHECK(started[kind] > 0);
}

}  // namespace
}  // namespace sluice::feeder
