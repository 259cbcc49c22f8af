// Rule 12: who waits for a pipeline to be loaded, and who does not.
#include "src/base/testing/catch.h"
#include "worker-image/feeder/dispatch.h"
#include "worker-image/testing/dispatch_fixture.h"

namespace sluice::feeder {
namespace {

using namespace testing;
using Fixture = DispatchFixture;
using Text = std::vector<std::string>;

TEST_CASE("a request that waits for the load of its pipeline takes nothing from other pipelines") {
  Fixture f(1);
  f.dispatch.set_loaded(kLocal, kPipeline, false, f.now);
  f.submit(kAlice, 3);
  f.submit(kBob, 2, 1, kPipeline + 1);
  CHECK(f.assign() == Text{"1>0"});
  f.dispatch.set_loading(kLocal, 1);
  CHECK(f.assign() == Text{"4>0"});
  CHECK(f.answer(kLocal, 4) == AnswerKind::kFirst);
  CHECK(f.assign() == Text{"5>0"});
  f.dispatch.set_loaded(kLocal, kPipeline, true, f.now);
  f.dispatch.set_loading(kLocal, 0);
  CHECK(f.answer(kLocal, 5) == AnswerKind::kFirst);
  CHECK(f.assign().empty());
  CHECK(f.answer(kLocal, 1) == AnswerKind::kFirst);
  CHECK(f.assign() == Text{"2>0"});
}

TEST_CASE("one request waits for a load; when it is over, or has an answer, the others follow") {
  Fixture f(2);
  f.join(kWorker, 1, 1);
  f.dispatch.set_loaded(kLocal, kPipeline, false, f.now);
  f.submit(kAlice, 4);
  CHECK(f.assign() == Text{"1>0", "2>1"});  // other executors are not concerned
  f.dispatch.set_loading(kLocal, 1);
  CHECK(f.assign().empty());
  SECTION("loaded") {
    f.dispatch.set_loaded(kLocal, kPipeline, true, f.now);
    f.dispatch.set_loading(kLocal, 0);
    CHECK(f.assign() == Text{"3>0"});
  }
  SECTION("answered") {
    f.dispatch.set_loading(kLocal, 0);
    f.answer(kLocal, 1);
    CHECK(f.assign() == Text{"3>0", "4>0"});
  }
  SECTION("not loaded: the next one tries alone") {
    f.dispatch.set_loading(kLocal, 0);
    CHECK(f.fail(kLocal, 1, false) == FailureKind::kFinal);
    CHECK(f.assign() == Text{"3>0"});
  }
}

TEST_CASE("a pipeline that each process loads for itself has no more of them than there are credits") {
  Fixture f(2);
  f.submit(kAlice, 4);
  CHECK(f.assign() == Text{"1>0", "2>0"});
  f.dispatch.set_loading(kLocal, 1);
  CHECK(f.assign().empty());
  f.submit(kBob, 1, 1, kPipeline + 1);
  CHECK(f.assign() == Text{"5>0"});
}

TEST_CASE("a load does not make its executor look slow") {
  Fixture f(1);
  f.join(kWorker, 1, 1);  // a second for a batch
  f.dispatch.forget_pipeline(kPipeline);
  f.dispatch.allow(kWorker, kPipeline);
  f.dispatch.set_loaded(kLocal, kPipeline, false, f.now);
  f.submit(kAlice, 1);
  CHECK(f.assign() == Text{"1>0"});
  f.now += std::chrono::seconds(60);
  f.dispatch.set_loaded(kLocal, kPipeline, true, f.now);
  f.now += std::chrono::seconds(1);
  CHECK(f.answer(kLocal, 1) == AnswerKind::kFirst);
  f.submit(kAlice, 4);
  CHECK(f.assign() == Text{"2>0", "2>?1"});
  f.now += std::chrono::seconds(1);
  f.answer(kLocal, 2);
  f.answer(kWorker, 2);
  CHECK(f.assign() == Text{"3>0", "4>1"});  // they are as fast
}

}  // namespace
}  // namespace sluice::feeder
