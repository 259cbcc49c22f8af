// A Dispatch on a clock that the test moves, with workers that were measured.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/base/testing/catch.h"
#include "worker-image/feeder/dispatch.h"

namespace sluice::testing {

inline constexpr feeder::ClientId kAlice = 1;
inline constexpr feeder::ClientId kBob = 2;
inline constexpr feeder::ExecutorId kLocal = feeder::kLocalExecutor;
inline constexpr feeder::ExecutorId kWorker = 1;
inline constexpr feeder::PipelineNumber kPipeline = 7;

// A dispatch with a local executor of `local_credits`. The tests number their requests 1, 2, ..
struct DispatchFixture {
  static constexpr feeder::ClientId kMeasuring = 99;

  feeder::Dispatch dispatch;
  feeder::RequestId next = 1;
  feeder::RequestId before = 0;  // requests that measured executors
  feeder::Dispatch::TimePoint now{};

  explicit DispatchFixture(std::size_t local_credits) {
    dispatch.add_executor(kLocal, std::max<std::size_t>(1, local_credits), local_credits);
    for (const feeder::ClientId client : {kAlice, kBob, kMeasuring}) dispatch.add_client(client);
  }

  // A remote worker that is ready for the pipelines of these tests, and was measured: a batch takes it so long. All
  // others take a second.
  void join(feeder::ExecutorId executor, std::size_t threads, std::size_t credits, int seconds = 1) {
    join_unmeasured(executor, threads, credits);
    REQUIRE(next == 1);
    for (const feeder::PipelineNumber pipeline : {kPipeline, kPipeline + 1}) {
      for (int i = 0; i < 8; ++i) REQUIRE(dispatch.submit(kMeasuring, 1, pipeline, ++before, 1));
      std::vector<std::pair<feeder::Assignment, feeder::Dispatch::TimePoint>> running;
      while (dispatch.pending() > 0 || dispatch.outstanding() > 0) {
        for (const feeder::Assignment& a : dispatch.assign(now))
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
  void join_unmeasured(feeder::ExecutorId executor, std::size_t threads, std::size_t credits) {
    dispatch.add_executor(executor, threads, credits);
    for (const feeder::PipelineNumber pipeline : {kPipeline, kPipeline + 1}) dispatch.allow(executor, pipeline);
  }

  void submit(feeder::ClientId client, std::size_t count, feeder::StreamId stream = 1,
              feeder::PipelineNumber pipeline = kPipeline) {
    for (std::size_t i = 0; i < count; ++i) REQUIRE(dispatch.submit(client, stream, pipeline, before + next++, 1));
  }

  // Requests of one virtual worker after the other, in turn.
  void submit_for_virtual_workers(feeder::ClientId client, std::size_t count, std::uint32_t workers,
                                  bool portable = false) {
    for (std::uint32_t i = 0; i < count; ++i)
      REQUIRE(dispatch.submit(client, 1, kPipeline, before + next++, 1, feeder::VirtualWorker{i % workers, portable}));
  }

  // "request>executor" of everything that starts now, hedges with "!", probes with "?".
  std::vector<std::string> assign() {
    std::vector<std::string> text;
    for (const feeder::Assignment& a : dispatch.assign(now)) {
      const char* kind = a.kind == feeder::AttemptKind::kFirst   ? ">"
                         : a.kind == feeder::AttemptKind::kHedge ? ">!"
                                                                 : ">?";
      text.push_back(std::to_string(a.request - before) + kind + std::to_string(a.executor));
    }
    return text;
  }
  // The same, after so many seconds.
  std::vector<std::string> assign_after(double seconds) {
    now += std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(seconds));
    return assign();
  }

  feeder::AnswerKind answer(feeder::ExecutorId executor, feeder::RequestId request) {
    return answer_to(executor, request).kind;
  }
  feeder::Answer answer_to(feeder::ExecutorId executor, feeder::RequestId request) {
    return dispatch.answer(executor, before + request, now);
  }
  feeder::FailureKind fail(feeder::ExecutorId executor, feeder::RequestId request, bool retry_elsewhere) {
    return dispatch.fail(executor, before + request, retry_elsewhere).kind;
  }
};

}  // namespace sluice::testing
