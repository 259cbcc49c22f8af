#include "worker-image/feeder/dispatch.h"

#include "src/base/testing/catch.h"

namespace sluice::feeder {
namespace {

constexpr ClientId kAlice = 1;
constexpr ClientId kBob = 2;
constexpr ExecutorId kLocal = kLocalExecutor;
constexpr ExecutorId kWorker = 1;
constexpr PipelineNumber kPipeline = 7;

// A dispatch with a local executor of `local_credits`; requests are submitted with ascending ids.
struct Fixture {
  Dispatch dispatch;
  RequestId next = 1;

  explicit Fixture(std::size_t local_credits) {
    dispatch.add_executor(kLocal, std::max<std::size_t>(1, local_credits), local_credits);
    dispatch.add_client(kAlice);
    dispatch.add_client(kBob);
  }

  // A remote worker that is ready for the pipelines of these tests.
  void join(ExecutorId executor, std::size_t threads, std::size_t credits) {
    dispatch.add_executor(executor, threads, credits);
    for (const PipelineNumber pipeline : {kPipeline, kPipeline + 1}) dispatch.allow(executor, pipeline);
  }

  std::vector<RequestId> submit(ClientId client, int count, StreamId stream = 1, PipelineNumber pipeline = kPipeline) {
    std::vector<RequestId> ids;
    for (int i = 0; i < count; ++i) {
      ids.push_back(next++);
      REQUIRE(dispatch.submit(client, stream, pipeline, ids.back()));
    }
    return ids;
  }

  // "request>executor" of everything that starts now.
  std::vector<std::string> assign() {
    std::vector<std::string> text;
    for (const Assignment& a : dispatch.assign())
      text.push_back(std::to_string(a.request) + ">" + std::to_string(a.executor));
    return text;
  }
};

using Text = std::vector<std::string>;

TEST_CASE("the oldest requests go first, as far as credits reach") {
  Fixture f(2);
  f.submit(kAlice, 4);
  CHECK(f.assign() == Text{"1>0", "2>0"});
  CHECK(f.assign().empty());
  CHECK(f.dispatch.answer(kLocal, 2) == AnswerKind::kFirst);
  CHECK(f.assign() == Text{"3>0"});
  CHECK(f.dispatch.pending() == 1);
  CHECK(f.dispatch.outstanding() == 2);
}

TEST_CASE("work goes where the load is smallest, and to the local threads in a tie") {
  Fixture f(1);
  f.join(kWorker, 2, 4);
  f.submit(kAlice, 9);
  // Loads after each: local 1/1; worker 1/2, 2/2, then its queue 3/2, 4/2.
  CHECK(f.assign() == Text{"1>0", "2>1", "3>1", "4>1", "5>1"});
}

TEST_CASE("a lost worker's requests go elsewhere, before younger ones") {
  Fixture f(1);
  f.join(kWorker, 1, 2);
  f.submit(kAlice, 5);
  CHECK(f.assign() == Text{"1>0", "2>1", "3>1"});
  CHECK(f.dispatch.remove_executor(kWorker) == 2);
  CHECK(f.dispatch.answer(kLocal, 1) == AnswerKind::kFirst);
  CHECK(f.assign() == Text{"2>0"});
  f.join(2, 1, 2);
  CHECK(f.assign() == Text{"3>2", "4>2"});
}

TEST_CASE("a lost worker's late answer counts if it is the first") {
  Fixture f(1);
  f.join(kWorker, 1, 1);
  f.submit(kAlice, 2);
  f.assign();
  f.dispatch.remove_executor(kWorker);
  SECTION("while the request is pending again") {
    CHECK(f.dispatch.answer(kWorker, 2) == AnswerKind::kFirst);
    f.dispatch.answer(kLocal, 1);
    CHECK(f.assign().empty());
  }
  SECTION("while another executor has it: that one's answer is dropped, its credit returns") {
    f.dispatch.answer(kLocal, 1);
    CHECK(f.assign() == Text{"2>0"});
    CHECK(f.dispatch.answer(kWorker, 2) == AnswerKind::kFirst);
    CHECK(f.dispatch.held_by(kLocal) == 1);
    CHECK(f.dispatch.answer(kLocal, 2) == AnswerKind::kUnwanted);
    CHECK(f.dispatch.held_by(kLocal) == 0);
  }
  SECTION("after another's answer it is a duplicate") {
    f.dispatch.answer(kLocal, 1);
    f.assign();
    CHECK(f.dispatch.answer(kLocal, 2) == AnswerKind::kFirst);
    CHECK(f.dispatch.answer(kWorker, 2) == AnswerKind::kDuplicate);
  }
}

TEST_CASE("a draining worker finishes what it has and gets nothing new") {
  Fixture f(1);
  f.join(kWorker, 4, 4);
  f.submit(kAlice, 3);
  f.assign();
  const std::size_t before = f.dispatch.held_by(kWorker);
  REQUIRE(before > 0);
  f.dispatch.drain(kWorker);
  CHECK(f.dispatch.credits() == 1);
  f.submit(kAlice, 5);
  for (const std::string& assignment : f.assign()) CHECK(assignment.ends_with(">0"));
  CHECK(f.dispatch.held_by(kWorker) == before);
  CHECK(f.dispatch.answer(kWorker, 2) == AnswerKind::kFirst);
}

TEST_CASE("the emptiest client is served first") {
  Fixture f(1);
  f.submit(kAlice, 3);
  f.submit(kBob, 3);
  f.dispatch.set_held(kAlice, 2);
  CHECK(f.assign() == Text{"4>0"});
  f.dispatch.answer(kLocal, 4);
  f.dispatch.set_held(kBob, 3);
  CHECK(f.assign() == Text{"1>0"});
}

TEST_CASE("clients that are equally empty take turns") {
  Fixture f(4);
  f.submit(kAlice, 4);
  f.submit(kBob, 4);
  CHECK(f.assign() == Text{"1>0", "5>0", "2>0", "6>0"});
}

TEST_CASE("a cancelled stream's requests are dropped, and keep their credits until the executor answers") {
  Fixture f(2);
  f.submit(kAlice, 3, /*stream=*/1);
  f.assign();
  const auto attempts = f.dispatch.cancel_stream(kAlice, 1);
  CHECK(attempts.size() == 2);
  f.submit(kAlice, 1, /*stream=*/2);
  CHECK(f.assign().empty());
  CHECK(f.dispatch.answer(kLocal, 1) == AnswerKind::kUnwanted);
  CHECK(f.assign() == Text{"4>0"});
  CHECK(f.dispatch.fail(kLocal, 2, true) == FailureKind::kUnwanted);
  CHECK(f.dispatch.held_by(kLocal) == 1);
}

TEST_CASE("cancelling one stream leaves the others alone") {
  Fixture f(1);
  f.submit(kAlice, 2, 1);
  f.submit(kAlice, 2, 2);
  f.dispatch.cancel_stream(kAlice, 1);
  CHECK(f.assign() == Text{"3>0"});
}

TEST_CASE("a client that goes takes its requests with it") {
  Fixture f(1);
  f.submit(kAlice, 3);
  f.submit(kBob, 1);
  CHECK(f.assign() == Text{"1>0"});
  CHECK(f.dispatch.remove_client(kAlice).size() == 1);
  CHECK(f.dispatch.pending() == 1);
  CHECK(f.dispatch.answer(kLocal, 1) == AnswerKind::kUnwanted);
  CHECK(f.assign() == Text{"4>0"});
  CHECK(!f.dispatch.submit(kAlice, 1, kPipeline, 99));
}

TEST_CASE("what a worker fails is tried again by the local executor alone") {
  Fixture f(1);
  f.join(kWorker, 4, 4);
  f.join(2, 4, 4);
  f.submit(kAlice, 2);
  CHECK(f.assign() == Text{"1>0", "2>1"});
  CHECK(f.dispatch.fail(kWorker, 2, true) == FailureKind::kRetried);
  CHECK(f.assign().empty());  // the local thread is busy; executor 2 is not asked
  f.dispatch.answer(kLocal, 1);
  CHECK(f.assign() == Text{"2>0"});
  SECTION("it fails there, too: the data's fault") {
    CHECK(f.dispatch.fail(kLocal, 2, true) == FailureKind::kFinal);
    f.submit(kAlice, 2);
    CHECK(f.assign() == Text{"3>0", "4>1"});
  }
  SECTION("it works there: the worker's fault, and it does not get this pipeline again") {
    CHECK(f.dispatch.answer(kLocal, 2) == AnswerKind::kFirst);
    f.submit(kAlice, 3);
    CHECK(f.assign() == Text{"3>0", "4>2", "5>2"});
    f.submit(kAlice, 1, 1, /*pipeline=*/8);
    CHECK(f.assign() == Text{"6>1"});
  }
}

TEST_CASE("a failure that would repeat everywhere is final at once") {
  Fixture f(1);
  f.join(kWorker, 9, 9);
  f.submit(kAlice, 2);
  f.assign();
  CHECK(f.dispatch.fail(kWorker, 2, false) == FailureKind::kFinal);
}

TEST_CASE("a worker that refuses a pipeline gives its requests back and keeps others") {
  Fixture f(0);
  f.join(kWorker, 4, 4);
  f.submit(kAlice, 2, 1, /*pipeline=*/7);
  f.submit(kAlice, 1, 1, /*pipeline=*/8);
  CHECK(f.assign().size() == 3);
  CHECK(f.dispatch.exclude(kWorker, 7) == 2);
  CHECK(f.assign().empty());
  CHECK(f.dispatch.held_by(kWorker) == 1);
  f.dispatch.set_capacity(kLocal, 2, 2);
  CHECK(f.assign() == Text{"1>0", "2>0"});
}

TEST_CASE("a worker gets a pipeline's requests only when it is ready for it") {
  Fixture f(1);
  f.dispatch.add_executor(kWorker, 8, 8);
  f.submit(kAlice, 2);
  CHECK(f.assign() == Text{"1>0"});
  f.dispatch.allow(kWorker, kPipeline + 1);
  CHECK(f.assign().empty());
  f.dispatch.allow(kWorker, kPipeline);
  CHECK(f.assign() == Text{"2>1"});
  f.dispatch.exclude(kWorker, kPipeline);
  f.dispatch.allow(kWorker, kPipeline);
  CHECK(f.assign().empty());
}

TEST_CASE("the local executor cannot be excluded") {
  Fixture f(1);
  CHECK(f.dispatch.exclude(kLocal, kPipeline) == 0);
  f.submit(kAlice, 1);
  CHECK(f.assign() == Text{"1>0"});
}

TEST_CASE("shrinking an executor takes no work away") {
  Fixture f(4);
  f.submit(kAlice, 6);
  CHECK(f.assign().size() == 4);
  f.dispatch.set_capacity(kLocal, 1, 1);
  for (RequestId id = 1; id <= 3; ++id) {
    CHECK(f.dispatch.answer(kLocal, id) == AnswerKind::kFirst);
    CHECK(f.assign().empty());
  }
  f.dispatch.answer(kLocal, 4);
  CHECK(f.assign() == Text{"5>0"});
}

TEST_CASE("a client cannot queue without limit") {
  Fixture f(0);
  f.submit(kAlice, Dispatch::kPendingPerClientMax);
  CHECK(!f.dispatch.submit(kAlice, 1, kPipeline, f.next++));
  CHECK(f.dispatch.submit(kBob, 1, kPipeline, f.next++));
}

TEST_CASE("events about executors and requests that nobody knows change nothing") {
  Fixture f(1);
  CHECK(f.dispatch.answer(42, 4711) == AnswerKind::kDuplicate);
  CHECK(f.dispatch.fail(42, 4711, true) == FailureKind::kUnwanted);
  CHECK(f.dispatch.remove_executor(42) == 0);
  CHECK(f.dispatch.cancel_stream(99, 1).empty());
  CHECK(f.dispatch.remove_client(99).empty());
  f.dispatch.drain(42);
  f.dispatch.set_capacity(42, 1, 1);
  f.dispatch.set_held(99, 1);
  f.dispatch.allow(42, 1);
  f.submit(kAlice, 1);
  CHECK(f.assign() == Text{"1>0"});
}

}  // namespace
}  // namespace sluice::feeder
