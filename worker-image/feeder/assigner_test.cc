// The choice of an executor: rules 2 to 4 of dispatch.h.
#include "worker-image/feeder/assigner.h"

#include "src/base/testing/catch.h"
#include "worker-image/testing/dispatch_fixture.h"

namespace sluice::feeder {
namespace {

using namespace testing;
using Fixture = DispatchFixture;
using Text = std::vector<std::string>;

TEST_CASE("work goes where it is finished first, and to the local threads in a tie") {
  Fixture f(1);
  f.join(kWorker, 2, 4);
  f.submit(kAlice, 9);
  // The worker's two threads take 2 and 3, then 5 and 6; 4 waits for the local thread, which will be free as early.
  CHECK(f.assign() == Text{"1>0", "2>1", "3>1", "5>1", "6>1"});
}

TEST_CASE("a worker of unknown speed gets a copy of what another has, and is known by its answer") {
  Fixture f(1);
  f.join(2, 1, 2);
  f.join_unmeasured(kWorker, 1, 2);
  f.submit(kAlice, 2);
  CHECK(f.assign() == Text{"1>0", "2>2"});  // the others can take it all
  f.submit(kAlice, 6);
  CHECK(f.assign() == Text{"4>2", "4>?1"});
  CHECK(f.assign().empty());  // no second probe
  f.now += std::chrono::seconds(1);
  SECTION("the first answer is another's: the probe goes on, and is dropped in the end") {
    f.answer(2, 2);
    f.answer(kLocal, 1);
    CHECK(f.assign() == Text{"3>0", "6>2"});
    f.now += std::chrono::milliseconds(900);
    CHECK(f.answer_to(2, 4).overtaken.empty());
    f.now += std::chrono::milliseconds(100);
    CHECK(f.answer(kWorker, 4) == AnswerKind::kDuplicate);
  }
  SECTION("the first answer is the probe's: the other is told") {
    CHECK(f.answer_to(kWorker, 4).overtaken == std::vector<ExecutorId>{2});
    CHECK(f.fail(2, 4, true) == FailureKind::kUnwanted);
  }
  SECTION("the other is lost: the probe has the request alone, and may be hedged") {
    f.dispatch.remove_executor(2);
    CHECK(f.answer(kLocal, 1) == AnswerKind::kFirst);
    CHECK(f.assign() == Text{"2>0"});
    CHECK(f.answer_to(kWorker, 4).kind == AnswerKind::kFirst);
  }
  f.dispatch.cancel_stream(kAlice, 1);
}

TEST_CASE("before anything was measured, a worker gets the youngest request") {
  Fixture f(1);
  f.join_unmeasured(kWorker, 4, 8);
  f.submit(kAlice, 5);
  CHECK(f.assign() == Text{"1>0", "5>1"});
  CHECK(f.assign().empty());
  f.now += std::chrono::seconds(1);
  f.answer(kWorker, 5);
  CHECK(f.assign() == Text{"3>1", "4>1"});  // the local thread should be free now, and takes 2
}

TEST_CASE("a slow executor gets only what the line will not reach before it is done") {
  Fixture f(1);
  f.join(kWorker, 1, 2, /*seconds=*/10);
  f.submit(kAlice, 10);
  CHECK(f.assign() == Text{"1>0"});
  f.submit(kAlice, 3);
  CHECK(f.assign() == Text{"11>1"});  // the local thread would need eleven seconds
  f.submit(kAlice, 5);
  CHECK(f.assign().empty());
}

TEST_CASE("the head that is late is given to the executor that is expected first, and no one else") {
  Fixture f(1);
  f.join(kWorker, 1, 2);
  f.submit(kAlice, 4);
  CHECK(f.assign() == Text{"1>0", "2>1", "4>1"});
  f.now += std::chrono::seconds(1);
  CHECK(f.answer(kLocal, 1) == AnswerKind::kFirst);
  CHECK(f.assign() == Text{"3>0"});
  f.now += std::chrono::seconds(1);
  CHECK(f.answer(kLocal, 3) == AnswerKind::kFirst);
  CHECK(f.assign().empty());                   // two seconds of one that takes one: may come any moment
  CHECK(f.assign_after(1.1) == Text{"2>!0"});  // as much longer as it took too long already: the other is faster
  CHECK(f.assign_after(10).empty());           // one hedge
  CHECK(f.answer_to(kLocal, 2).overtaken == std::vector<ExecutorId>{kWorker});
  CHECK(f.assign() == Text{"4>!0"});
  SECTION("the loser's answer is a duplicate") { CHECK(f.answer(kWorker, 2) == AnswerKind::kDuplicate); }
  SECTION("the hedge is what is left when the loser goes") {
    CHECK(f.dispatch.remove_executor(kWorker) == 0);
    CHECK(f.answer(kLocal, 4) == AnswerKind::kFirst);
  }
  SECTION("the loser may be first all the same") {
    CHECK(f.answer_to(kWorker, 4).overtaken == std::vector<ExecutorId>{kLocal});
    CHECK(f.fail(kLocal, 4, true) == FailureKind::kUnwanted);
  }
}

TEST_CASE("what the loop will not reach before it is done is not hedged") {
  Fixture f(1);
  f.join(kWorker, 1, 2);
  f.submit(kAlice, 2);
  CHECK(f.assign() == Text{"1>0", "2>1"});
  f.answer(kLocal, 1);
  f.dispatch.set_pace(kAlice, 1, 0, 60, f.now);
  CHECK(f.assign_after(10).empty());
  f.dispatch.set_pace(kAlice, 1, 1, 60, f.now);
  CHECK(f.assign() == Text{"2>!0"});
}

TEST_CASE("batches that the client made itself count for when the loop will reach the others") {
  Fixture f(1);
  f.join(kWorker, 1, 2, /*seconds=*/10);
  f.submit(kAlice, 1);
  CHECK(f.assign() == Text{"1>0"});
  f.answer(kLocal, 1);
  f.dispatch.set_pace(kAlice, 1, 21, 4, f.now);  // twenty of them were not asked for
  f.submit(kAlice, 4);
  CHECK(f.assign() == Text{"2>0", "5>1"});  // the last one is due in twelve seconds
}

TEST_CASE("a slower executor takes what it has in time while the faster one is busy") {
  Fixture f(1);
  f.join(kWorker, 1, 2, /*seconds=*/10);
  f.submit(kAlice, 4);
  CHECK(f.assign() == Text{"1>0"});
  f.dispatch.set_pace(kAlice, 1, 0, 4, f.now);
  CHECK(f.assign() == Text{"4>1"});  // the loop will be there in twelve seconds
}

}  // namespace
}  // namespace sluice::feeder
