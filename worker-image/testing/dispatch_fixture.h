// A Dispatch on a clock that the test moves, with workers that were measured.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/base/testing/catch.h"
#include "worker-image/feeder/dispatch.h"

namespace sluice::feeder::testing {

inline constexpr ClientId kAlice = 1;
inline constexpr ClientId kBob = 2;
inline constexpr ExecutorId kLocal = kLocalExecutor;
inline constexpr ExecutorId kWorker = 1;
inline constexpr PipelineNumber kPipeline = 7;

// A dispatch with a local executor of `local_credits`. The tests number their requests 1, 2, ..
struct DispatchFixture {
  static constexpr ClientId kMeasuring = 99;

  Dispatch dispatch;
  RequestId next = 1;
  RequestId before = 0;  // requests that measured executors
  Dispatch::TimePoint now{};

  explicit DispatchFixture(std::size_t local_credits) {
    dispatch.add_executor(kLocal, std::max<std::size_t>(1, local_credits), local_credits);
    for (const ClientId client : {kAlice, kBob, kMeasuring}) dispatch.add_client(client);
  }

  // A remote worker that is ready for the pipelines of these tests, and was measured: a batch takes it so long. All
  // others take a second.
  void join(ExecutorId executor, std::size_t threads, std::size_t credits, int seconds = 1) {
    join_unmeasured(executor, threads, credits);
    REQUIRE(next == 1);
    for (const PipelineNumber pipeline : {kPipeline, kPipeline + 1}) {
      for (int i = 0; i < 8; ++i) REQUIRE(dispatch.submit(kMeasuring, 1, pipeline, ++before, 1));
      std::vector<std::pair<Assignment, Dispatch::TimePoint>> running;
      while (dispatch.pending() > 0 || dispatch.outstanding() > 0) {
        for (const Assignment& a : dispatch.assign(now))
          running.emplace_back(a, now + std::chrono::seconds(a.executor == executor ? seconds : 1));
        now += std::chrono::seconds(1);
        std::erase_if(running, [&](const auto& attempt) {
          if (attempt.second > now) return false;
          dispatch.answer(attempt.first.executor, attempt.first.request, now);
          return true;
        });
      }
    }
  }
  void join_unmeasured(ExecutorId executor, std::size_t threads, std::size_t credits) {
    dispatch.add_executor(executor, threads, credits);
    for (const PipelineNumber pipeline : {kPipeline, kPipeline + 1}) dispatch.allow(executor, pipeline);
  }

  void submit(ClientId client, std::size_t count, StreamId stream = 1, PipelineNumber pipeline = kPipeline) {
    for (std::size_t i = 0; i < count; ++i) REQUIRE(dispatch.submit(client, stream, pipeline, before + next++, 1));
  }

  // Requests of one virtual worker after the other, in turn.
  void submit_for_virtual_workers(ClientId client, std::size_t count, std::uint32_t workers, bool portable = false) {
    for (std::uint32_t i = 0; i < count; ++i)
      REQUIRE(dispatch.submit(client, 1, kPipeline, before + next++, 1, VirtualWorker{i % workers, portable}));
  }

  // "request>executor" of everything that starts now, hedges with "!", probes with "?".
  std::vector<std::string> assign() {
    std::vector<std::string> text;
    for (const Assignment& a : dispatch.assign(now)) {
      const char* kind = a.kind == AttemptKind::kFirst ? ">" : a.kind == AttemptKind::kHedge ? ">!" : ">?";
      text.push_back(std::to_string(a.request - before) + kind + std::to_string(a.executor));
    }
    return text;
  }
  // The same, after so many seconds.
  std::vector<std::string> assign_after(double seconds) {
    now += std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(seconds));
    return assign();
  }

  AnswerKind answer(ExecutorId executor, RequestId request) { return answer_to(executor, request).kind; }
  Answer answer_to(ExecutorId executor, RequestId request) { return dispatch.answer(executor, before + request, now); }
  FailureKind fail(ExecutorId executor, RequestId request, bool retry_elsewhere) {
    return dispatch.fail(executor, before + request, retry_elsewhere).kind;
  }
};

}  // namespace sluice::feeder::testing
