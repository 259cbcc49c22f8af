// Late requests are sent once more: which answer counts, and that nothing is left of the other.
#include "src/base/testing/catch.h"
#include "src/object_store/testing/scripted_client.h"

namespace sluice::object_store {
namespace {

using std::chrono::milliseconds;
using testing::Outcome;
using testing::ScriptedClient;

// A client that knows 100 answers of 100 ms each, so that a request of four bytes is late after 100 ms and may be sent
// again. Their own timers have passed.
struct SteadySite : ScriptedClient {
  SteadySite() {
    for (int i = 0; i < 100; ++i) {
      Outcome outcome;
      get(range(), outcome);
      clock.advance(milliseconds(100));
      network->answer(good());
    }
    network->pass_all();
    asked_before = network->asked;
  }

  // One request, and the same once more when it is late.
  void be_late(Outcome& outcome) {
    get(range(), outcome);
    CHECK(network->pass() == Approx(0.1));
    REQUIRE(network->pending.size() == 2);
    CHECK(network->pending[1].request.headers == network->pending[0].request.headers);
  }

  int asked_before = 0;
};

std::uint64_t now(const Count& count) { return count.load(); }

TEST_CASE("the first good answer counts, and the other request is cancelled") {
  const std::size_t first = GENERATE(0, 1);
  SteadySite site;
  Outcome outcome;
  int told = 0;
  site.client.get({site.range(), false, nullptr, [&](auto bytes) {
                     outcome = std::move(bytes);
                     ++told;
                   }});
  site.network->run();
  site.network->pass();
  REQUIRE(site.network->pending.size() == 2);
  site.network->answer(ScriptedClient::good(), first);
  CHECK(told == 1);
  CHECK(outcome->ok());
  CHECK(site.network->pending.empty());
  CHECK(site.network->cancelled == 1);
  CHECK(now(site.client.counters().hedged) == 1);
  CHECK(now(site.client.counters().hedges_useful) == first);
  CHECK(now(site.client.counters().requests) == 102);
  CHECK(now(site.client.counters().bytes) == 101 * 4);
}

TEST_CASE("an answer in time leaves nothing to be sent again") {
  SteadySite site;
  Outcome outcome;
  site.get(site.range(), outcome);
  site.network->answer(ScriptedClient::good());
  site.network->pass_all();
  CHECK(site.network->asked == site.asked_before + 1);
  CHECK(now(site.client.counters().hedged) == 0);
}

TEST_CASE("where one of two requests fails, the other one decides") {
  struct Case {
    const char* title;
    Result<HttpAnswer> answer;
  };
  HttpAnswer changed = ScriptedClient::good();
  changed.headers[1].second = "\"f\"";
  HttpAnswer cut_off = ScriptedClient::good();
  cut_off.body.pop_back();
  const Case cases[] = {{"reset", unavailable("the connection is lost")},
                        {"throttled", ScriptedClient::refusal(503)},
                        {"away", ScriptedClient::refusal(404)},
                        {"another state", changed},
                        {"fewer bytes", cut_off}};
  for (const auto& each : cases) {
    for (const std::size_t failing : {0, 1}) {
      CAPTURE(each.title, failing);
      SteadySite site;
      Outcome outcome;
      site.be_late(outcome);
      site.network->answer(each.answer, failing);
      CHECK_FALSE(outcome);
      REQUIRE(site.network->pending.size() == 1);
      site.network->answer(ScriptedClient::good());
      REQUIRE(outcome);
      CHECK(**outcome == RangeClient::Bytes{7, 7, 7, 7});
      site.network->pass_all();
      CHECK(site.network->pending.empty());
      CHECK(site.network->cancelled == 0);
    }
  }
}

TEST_CASE("where both fail, one pause is kept before the next attempt, and a final error is told once") {
  SteadySite site;
  Outcome outcome;
  site.be_late(outcome);
  site.network->answer(unavailable("the connection is lost"));
  site.network->answer(unavailable("no answer in time"));
  CHECK(site.network->pending.empty());
  CHECK(site.network->pass() == Approx(0.05));
  REQUIRE(site.network->pending.size() == 1);
  site.network->answer(ScriptedClient::refusal(404));
  REQUIRE(outcome);
  CHECK(outcome->error().code() == ErrorCode::kNotFound);
  CHECK(now(site.client.counters().failed) == 2);
}

TEST_CASE("two requests that both hang are ended by the network, and tried again ten times in all") {
  SteadySite site;
  Outcome outcome;
  site.get(site.range(), outcome);
  for (int attempt = 1; attempt <= kAttemptsMost; ++attempt) {
    site.network->pass_all();
    REQUIRE_FALSE(outcome);
    while (!site.network->pending.empty()) site.network->answer(unavailable("no answer in time"));
  }
  REQUIRE(outcome);
  CHECK_THAT(outcome->error().message(), Catch::Contains("not read in 10 attempts: no answer in time ("));
}

TEST_CASE("one request of twenty is sent again, and none while the store says that it is too much") {
  SteadySite site;
  std::vector<Outcome> outcomes(40);
  for (Outcome& outcome : outcomes) site.get(site.range(), outcome);
  site.network->pass_all();
  CHECK(now(site.client.counters().hedged) == 5);  // of 100 answers
  for (std::size_t left = outcomes.size(); left > 0; --left) site.network->answer(ScriptedClient::good());
  CHECK(site.network->pending.empty());

  SteadySite busy;
  Outcome refused, late;
  busy.get(busy.range(), refused);
  busy.network->answer(ScriptedClient::refusal(503));
  busy.get(busy.range(), late);
  busy.network->pass_all();
  CHECK(now(busy.client.counters().hedged) == 0);
}

TEST_CASE("a late request waits for a place as others do, before them, and a first answer takes its turn") {
  SteadySite site;
  std::vector<Outcome> outcomes(300);
  for (Outcome& outcome : outcomes) site.get(site.range(), outcome);
  const std::size_t most = site.network->pending.size();
  site.network->pass();  // the first one is late
  CHECK(site.network->pending.size() == most);
  CHECK(now(site.client.counters().hedged) == 0);
  site.network->answer(ScriptedClient::good(), most - 1);
  CHECK(now(site.client.counters().hedged) == 1);  // in the place of the one that has come

  SteadySite failing;
  std::vector<Outcome> others(300);
  for (Outcome& outcome : others) failing.get(failing.range(), outcome);
  failing.network->pass();
  failing.network->answer(ScriptedClient::refusal(503));  // the late one: its pause comes first
  CHECK(now(failing.client.counters().hedged) == 0);
}

TEST_CASE("what was given up as late counts with the time that it took at least") {
  SteadySite site;
  for (int i = 0; i < 4; ++i) {
    Outcome outcome;
    site.be_late(outcome);
    site.clock.advance(std::chrono::seconds(1));
    site.network->answer(ScriptedClient::good(), 1);
    CHECK(outcome->ok());
  }
  for (int i = 0; i < 12; ++i) {
    Outcome outcome;
    site.get(site.range(), outcome);
    site.clock.advance(milliseconds(100));
    site.network->answer(ScriptedClient::good());
  }
  site.network->pass_all();
  Outcome outcome;
  site.get(site.range(), outcome);
  CHECK(site.network->pass() == Approx(1.1));
}

TEST_CASE("the end of a client forgets both requests") {
  SteadySite site;
  Outcome outcome;
  site.be_late(outcome);
  site.client.end();
  CHECK(site.network->pending.empty());
  CHECK_FALSE(outcome);
}

}  // namespace
}  // namespace sluice::object_store
