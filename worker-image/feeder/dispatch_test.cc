#include "worker-image/feeder/dispatch.h"

#include "src/base/testing/catch.h"
#include "worker-image/testing/dispatch_fixture.h"

namespace sluice::feeder {
namespace {

using namespace testing;
using Fixture = DispatchFixture;
using Text = std::vector<std::string>;

TEST_CASE("the oldest requests go first, as far as credits reach") {
  Fixture f(2);
  f.submit(kAlice, 4);
  CHECK(f.assign() == Text{"1>0", "2>0"});
  CHECK(f.assign().empty());
  CHECK(f.answer(kLocal, 2) == AnswerKind::kFirst);
  CHECK(f.assign() == Text{"3>0"});
  CHECK(f.dispatch.pending() == 1);
  CHECK(f.dispatch.outstanding() == 2);
}

TEST_CASE("a client that has a share starts no more, though credits are left; the others do") {
  Fixture f(5);
  f.dispatch.set_share(kAlice, 2);
  f.submit(kAlice, 4);
  CHECK(f.assign() == Text{"1>0", "2>0"});
  f.submit(kBob, 2);
  CHECK(f.assign() == Text{"5>0", "6>0"});
  f.answer(kLocal, 1);
  CHECK(f.assign() == Text{"3>0"});
  f.dispatch.set_share(kAlice, 3);
  CHECK(f.assign() == Text{"4>0"});
}

TEST_CASE("a lost worker's requests go elsewhere, before younger ones") {
  Fixture f(1);
  f.join(kWorker, 1, 2);
  f.submit(kAlice, 5);
  CHECK(f.assign() == Text{"1>0", "2>1", "4>1"});
  CHECK(f.dispatch.remove_executor(kWorker) == 2);
  CHECK(f.dispatch.pending() == 4);
  for (const char* next : {"2>0", "3>0", "4>0", "5>0"}) {
    f.answer(kLocal, static_cast<RequestId>(next[0] - '1'));
    CHECK(f.assign() == Text{next});
  }
}

TEST_CASE("a lost worker's late answer counts if it is the first") {
  Fixture f(1);
  f.join(kWorker, 1, 1);
  f.submit(kAlice, 2);
  f.assign();
  f.dispatch.remove_executor(kWorker);
  SECTION("while the request is pending again") {
    CHECK(f.answer(kWorker, 2) == AnswerKind::kFirst);
    f.answer(kLocal, 1);
    CHECK(f.assign().empty());
  }
  SECTION("while another executor has it: that one's answer is dropped, its credit returns") {
    f.answer(kLocal, 1);
    CHECK(f.assign() == Text{"2>0"});
    CHECK(f.answer(kWorker, 2) == AnswerKind::kFirst);
    CHECK(f.dispatch.held_by(kLocal) == 1);
    CHECK(f.answer(kLocal, 2) == AnswerKind::kDuplicate);
    CHECK(f.dispatch.held_by(kLocal) == 0);
  }
  SECTION("after another's answer it is a duplicate") {
    f.answer(kLocal, 1);
    f.assign();
    CHECK(f.answer(kLocal, 2) == AnswerKind::kFirst);
    CHECK(f.answer(kWorker, 2) == AnswerKind::kDuplicate);
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
  CHECK(f.answer(kWorker, 2) == AnswerKind::kFirst);
}

TEST_CASE("a virtual worker's batches are made by the local executor, one after the other") {
  Fixture f(4);
  f.join(kWorker, 4, 4);
  f.submit_for_virtual_workers(kAlice, 5, 2);
  CHECK(f.assign() == Text{"1>0", "2>0"});
  CHECK(f.assign_after(60).empty());  // no hedge, no probe
  CHECK(f.answer(kLocal, 2) == AnswerKind::kFirst);
  CHECK(f.assign() == Text{"4>0"});
  CHECK(f.fail(kLocal, 1, false) == FailureKind::kFinal);
  CHECK(f.assign() == Text{"3>0"});
  CHECK(f.dispatch.pending() == 1);
}

TEST_CASE("portable virtual workers have homes at all executors, and stay there") {
  Fixture f(2);
  f.join(kWorker, 2, 4);
  f.submit_for_virtual_workers(kAlice, 8, 4, true);
  CHECK(f.assign() == Text{"1>0", "2>1", "3>0", "4>1"});
  CHECK(f.assign_after(60).empty());  // no hedge, no probe
  CHECK(f.answer(kWorker, 4) == AnswerKind::kFirst);
  CHECK(f.answer(kWorker, 2) == AnswerKind::kFirst);
  CHECK(f.assign() == Text{"6>1", "8>1"});
  f.join_unmeasured(kWorker + 1, 2, 4);  // it comes too late for this pass
  CHECK(f.answer(kLocal, 1) == AnswerKind::kFirst);
  CHECK(f.assign() == Text{"5>0"});
}

TEST_CASE("a portable virtual worker moves where its home is lost, drains or may not run it") {
  Fixture f(2);
  f.join(kWorker, 2, 4);
  f.submit_for_virtual_workers(kAlice, 4, 2, true);
  CHECK(f.assign() == Text{"1>0", "2>1"});
  SECTION("lost") {
    CHECK(f.dispatch.remove_executor(kWorker) == 1);
    CHECK(f.assign() == Text{"2>0"});
  }
  SECTION("draining: what it has it finishes") {
    f.dispatch.drain(kWorker);
    CHECK(f.assign().empty());
    CHECK(f.answer(kWorker, 2) == AnswerKind::kFirst);
    CHECK(f.assign() == Text{"4>0"});
  }
  SECTION("refused") {
    CHECK(f.dispatch.exclude(kWorker, kPipeline) == 1);
    CHECK(f.assign() == Text{"2>0"});
  }
  SECTION("it fails everywhere: its home remains") {
    CHECK(f.fail(kWorker, 2, true) == FailureKind::kRetried);
    CHECK(f.assign() == Text{"2>0"});
    CHECK(f.fail(kLocal, 2, false) == FailureKind::kFinal);
    CHECK(f.assign() == Text{"4>1"});
  }
  SECTION("it fails there only: its home is here") {
    CHECK(f.fail(kWorker, 2, true) == FailureKind::kRetried);
    CHECK(f.assign() == Text{"2>0"});
    CHECK(f.answer(kLocal, 2) == AnswerKind::kFirst);
    CHECK(f.assign() == Text{"4>0"});
  }
}

TEST_CASE("homes are shared by threads and by speed") {
  Fixture f(1);
  SECTION("by threads") {
    f.join(kWorker, 3, 6);
    f.submit_for_virtual_workers(kAlice, 4, 4, true);
    CHECK(f.assign() == Text{"1>1", "2>1", "3>0", "4>1"});
  }
  SECTION("by speed") {
    f.join(kWorker, 1, 4, /*seconds=*/3);
    f.submit_for_virtual_workers(kAlice, 4, 4, true);
    CHECK(f.assign() == Text{"1>0", "4>1"});
    for (const char* next : {"2>0", "3>0"}) {
      f.answer(kLocal, static_cast<RequestId>(next[0] - '1'));
      CHECK(f.assign() == Text{next});
    }
  }
  SECTION("of two clients") {
    f.join(kWorker, 1, 2);
    f.submit_for_virtual_workers(kAlice, 1, 1, true);
    f.submit_for_virtual_workers(kBob, 1, 1, true);
    CHECK(f.assign() == Text{"1>0", "2>1"});
  }
  SECTION("those of a pass that is over count no more") {
    f.join(kWorker, 1, 2);
    f.submit_for_virtual_workers(kAlice, 1, 1, true);
    CHECK(f.assign() == Text{"1>0"});
    f.answer(kLocal, 1);
    f.dispatch.cancel_stream(kAlice, 1);
    f.submit_for_virtual_workers(kBob, 1, 1, true);
    CHECK(f.assign() == Text{"2>0"});
  }
}

TEST_CASE("virtual workers that wait leave the threads to other clients") {
  Fixture f(4);
  f.submit_for_virtual_workers(kAlice, 4, 1);
  f.submit(kBob, 2);
  CHECK(f.assign() == Text{"1>0", "5>0", "6>0"});
}

TEST_CASE("the emptiest client is served first") {
  Fixture f(1);
  f.submit(kAlice, 3);
  f.submit(kBob, 3);
  f.dispatch.set_held(kAlice, 2);
  CHECK(f.assign() == Text{"4>0"});
  f.answer(kLocal, 4);
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
  CHECK(f.answer(kLocal, 1) == AnswerKind::kUnwanted);
  CHECK(f.assign() == Text{"4>0"});
  CHECK(f.fail(kLocal, 2, true) == FailureKind::kUnwanted);
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
  CHECK(f.answer(kLocal, 1) == AnswerKind::kUnwanted);
  CHECK(f.assign() == Text{"4>0"});
  CHECK(!f.dispatch.submit(kAlice, 1, kPipeline, 99, 1));
}

TEST_CASE("what a worker fails is tried again by the local executor alone") {
  Fixture f(1);
  f.join(kWorker, 4, 4);
  f.join(2, 4, 4);
  f.submit(kAlice, 2);
  CHECK(f.assign() == Text{"1>0", "2>1"});
  CHECK(f.fail(kWorker, 2, true) == FailureKind::kRetried);
  CHECK(f.assign().empty());  // the local thread is busy; executor 2 is not asked
  f.now += std::chrono::seconds(1);
  f.answer(kLocal, 1);
  CHECK(f.assign() == Text{"2>0"});
  SECTION("it fails there, too: the data's fault") {
    CHECK(f.fail(kLocal, 2, true) == FailureKind::kFinal);
    f.submit(kAlice, 2);
    CHECK(f.assign() == Text{"3>0", "4>1"});
  }
  SECTION("it works there: the worker's fault, and it does not get this pipeline again") {
    f.now += std::chrono::seconds(1);
    CHECK(f.answer(kLocal, 2) == AnswerKind::kFirst);
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
  CHECK(f.fail(kWorker, 2, false) == FailureKind::kFinal);
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

TEST_CASE("a forgotten pipeline leaves nothing behind") {
  Fixture f(1);
  f.join_unmeasured(kWorker, 1, 2);
  const Dispatch before = f.dispatch;
  f.dispatch.allow(kWorker, 77);
  f.dispatch.exclude(kWorker, 78);
  f.dispatch.forget_pipeline(77);
  f.dispatch.forget_pipeline(78);
  CHECK((f.dispatch == before));
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
    CHECK(f.answer(kLocal, id) == AnswerKind::kFirst);
    CHECK(f.assign().empty());
  }
  f.answer(kLocal, 4);
  CHECK(f.assign() == Text{"5>0"});
}

TEST_CASE("a client cannot queue without limit") {
  Fixture f(0);
  f.submit(kAlice, Dispatch::kPendingPerClientMax);
  CHECK(!f.dispatch.submit(kAlice, 1, kPipeline, f.next++, 1));
  CHECK(f.dispatch.submit(kBob, 1, kPipeline, f.next++, 1));
}

TEST_CASE("events about unknown executors and requests change nothing") {
  Fixture f(1);
  CHECK(f.answer(42, 4711) == AnswerKind::kDuplicate);
  CHECK(f.fail(42, 4711, true) == FailureKind::kUnwanted);
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
