// Dispatch under random worker joins, losses, drains, failures, late answers and cancellations. Every request is
// answered exactly once, and no executor ever holds more than its credits. Two streams' batches are made by two virtual
// workers: by the local executor, each in their order.
#include <rapidcheck.h>

#include <algorithm>

#include "src/base/testing/catch.h"
#include "worker-image/feeder/dispatch.h"

namespace sluice::feeder {
namespace {

class World {
 public:
  World() {
    dispatch_.add_executor(kLocalExecutor, 2, 2, kLocalWaitingMax);
    credits_[kLocalExecutor] = 2;
    waiting_[kLocalExecutor] = kLocalWaitingMax;
    dispatch_.add_client(1);
    dispatch_.add_client(2);
  }

  void step(int action) {
    switch (action) {
      case 0:
      case 1: submit(); break;
      case 2: join(); break;
      case 3: lose(); break;
      case 4: drain(); break;
      case 5: fail(); break;
      case 6: answer_late(); break;
      case 7: cancel(); break;
      case 8: refuse_pipeline(); break;
      case 9: turn_to_waiting(); break;
      default: answer(); break;
    }
    assign();
    check();
  }

  // Executors answer until nothing is left.
  void run_out() {
    for (int round = 0; round < 100000 && !(running_.empty() && dispatch_.pending() == 0); ++round) {
      answer();
      assign();
      check();
    }
    RC_ASSERT(dispatch_.pending() == 0u);
    RC_ASSERT(dispatch_.outstanding() == 0u);
    for (const RequestId id : submitted_) RC_ASSERT(settled_[id] == (cancelled_.contains(id) ? settled_[id] : 1));
    for (const auto& [id, times] : settled_) RC_ASSERT(times <= 1);
  }

 private:
  void submit() {
    const RequestId id = next_++;
    const StreamId stream = pick(3);
    const ClientId client = 1 + pick(2);
    std::optional<VirtualWorker> virtual_worker;
    if (stream < 2) virtual_worker = VirtualWorker{static_cast<std::uint32_t>(pick(2)), stream == 1};
    RC_ASSERT(dispatch_.submit(client, stream, pick(3), id, 1 + pick(3), virtual_worker));
    stream_of_[id] = stream;
    if (virtual_worker) virtual_worker_of_[id] = {client, stream, virtual_worker->number};
    submitted_.push_back(id);
  }

  void join() {
    const ExecutorId executor = next_executor_++;
    const std::size_t credits = 1 + pick(4);
    waiting_[executor] = pick(6);
    dispatch_.add_executor(executor, 1 + pick(2), credits, waiting_[executor]);
    credits_[executor] = credits;
    for (PipelineNumber pipeline = 0; pipeline < 3; ++pipeline) {
      if (pick(4) > 0) dispatch_.allow(executor, pipeline);
    }
  }

  void lose() {
    const ExecutorId executor = some_worker();
    if (executor == kLocalExecutor) return;
    std::size_t held = 0;
    for (auto attempt = running_.begin(); attempt != running_.end();) {
      if (attempt->executor != executor) {
        ++attempt;
        continue;
      }
      late_.push_back(*attempt);
      held += 1;
      attempt = running_.erase(attempt);
    }
    RC_ASSERT(dispatch_.remove_executor(executor) <= held);
    credits_.erase(executor);
    draining_.erase(executor);
  }

  void drain() {
    const ExecutorId executor = some_worker();
    if (executor == kLocalExecutor) return;
    dispatch_.drain(executor);
    draining_.insert(executor);
  }

  void answer() {
    if (running_.empty()) return;
    const Assignment attempt = take(running_);
    settle(attempt.request, dispatch_.answer(attempt.executor, attempt.request, now_).kind == AnswerKind::kFirst);
  }

  void fail() {
    if (running_.empty()) return;
    const Assignment attempt = take(running_);
    settle(attempt.request, dispatch_.fail(attempt.executor, attempt.request, true).kind == FailureKind::kFinal);
  }

  void answer_late() {
    if (late_.empty()) return;
    const Assignment attempt = take(late_);
    settle(attempt.request, dispatch_.answer(attempt.executor, attempt.request, now_).kind == AnswerKind::kFirst);
  }

  void cancel() {
    const ClientId client = 1 + pick(2);
    const StreamId stream = pick(3);
    dispatch_.cancel_stream(client, stream);
    // Which of them were this client's is Dispatch's business; requests of the stream may or may not be answered now.
    for (const RequestId id : submitted_) {
      if (stream_of_[id] == stream && settled_[id] == 0) cancelled_.insert(id);
    }
  }

  void refuse_pipeline() {
    const ExecutorId executor = some_worker();
    if (executor == kLocalExecutor) return;
    dispatch_.exclude(executor, pick(3));
    // The worker still answers what it was asked: with a failure that frees nothing any more.
  }

  // Or back to computing.
  void turn_to_waiting() {
    const PipelineNumber pipeline = pick(3);
    const double load = pick(2) == 0 ? 1 : 0.05 + 0.1 * static_cast<double>(pick(9));
    dispatch_.set_waits(pipeline, load, pick(12));
    any_waits_ = true;
  }

  void assign() {
    for (const Assignment& assignment : dispatch_.assign(now_)) {
      RC_ASSERT(!draining_.contains(assignment.executor));
      RC_ASSERT(credits_.contains(assignment.executor));
      RC_ASSERT(settled_[assignment.request] == 0);
      if (const auto own = virtual_worker_of_.find(assignment.request); own != virtual_worker_of_.end()) {
        RC_ASSERT(assignment.executor == kLocalExecutor || stream_of_[assignment.request] == 1);
        for (auto older = virtual_worker_of_.begin(); older != own; ++older) {
          const bool answered = settled_[older->first] > 0 || cancelled_.contains(older->first);
          RC_ASSERT(older->second != own->second || answered);
        }
      }
      running_.push_back(assignment);
    }
  }

  void check() {
    for (const auto& [executor, credits] : credits_)
      RC_ASSERT(dispatch_.held_by(executor) <= credits + (any_waits_ ? waiting_[executor] : 0));
  }

  void settle(RequestId id, bool first) { settled_[id] += first; }

  Assignment take(std::vector<Assignment>& from) {
    const auto chosen = from.begin() + static_cast<std::ptrdiff_t>(pick(from.size()));
    const Assignment attempt = *chosen;
    from.erase(chosen);
    return attempt;
  }

  ExecutorId some_worker() {
    return std::next(credits_.begin(), static_cast<std::ptrdiff_t>(pick(credits_.size())))->first;
  }

  static std::size_t pick(std::size_t below) { return *rc::gen::inRange<std::size_t>(0, below); }

  Dispatch dispatch_;
  Dispatch::TimePoint now_{};
  RequestId next_ = 1;
  ExecutorId next_executor_ = kLocalExecutor + 1;
  std::map<ExecutorId, std::size_t> credits_;
  static constexpr std::size_t kLocalWaitingMax = 5;
  std::map<ExecutorId, std::size_t> waiting_;
  bool any_waits_ = false;  // so far
  std::set<ExecutorId> draining_;
  std::vector<Assignment> running_;  // what executors are working on
  std::vector<Assignment> late_;     // what lost executors may still answer
  std::vector<RequestId> submitted_;
  std::map<RequestId, StreamId> stream_of_;
  std::map<RequestId, std::tuple<ClientId, StreamId, std::uint32_t>> virtual_worker_of_;
  std::map<RequestId, int> settled_;  // times that a client was told something
  std::set<RequestId> cancelled_;
};

TEST_CASE("every request is answered exactly once, whatever happens to the workers", "[property][one thread]") {
  const bool held = rc::check("random joins, losses, drains, failures, late answers, cancellations", [] {
    World world;
    const int steps = *rc::gen::inRange(1, 150);
    for (int i = 0; i < steps; ++i) world.step(*rc::gen::inRange(0, 15));
    world.run_out();
  });
  CHECK(held);
}

}  // namespace
}  // namespace sluice::feeder
