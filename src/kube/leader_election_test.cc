#include "src/kube/leader_election.h"

#include <atomic>
#include <mutex>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/testing/scripted_transport.h"
#include "src/kube/testing/objects.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;
using http::testing::ScriptedTransport;

// A server that holds one Lease, with resourceVersions and the conflicts they cause.
class LeaseServer {
 public:
  explicit LeaseServer(ScriptedTransport& transport) {
    transport.respond_with([this](const http::Request& request) { return answer(request); });
  }
  Json lease() const {
    std::lock_guard lock(mutex_);
    return lease_;
  }
  std::string holder() const { return lease().value("/spec/holderIdentity"_json_pointer, "nobody"); }
  std::int64_t transitions() const { return lease().value("/spec/leaseTransitions"_json_pointer, std::int64_t{-1}); }
  // Another client writes.
  void put(const std::string& holder, int duration_seconds) {
    std::lock_guard lock(mutex_);
    store(
        {{"spec", {{"holderIdentity", holder}, {"leaseDurationSeconds", duration_seconds}, {"leaseTransitions", 3}}}});
  }
  void set_down(bool down) { down_ = down; }
  int writes() const { return writes_; }

 private:
  using Answer = ScriptedTransport::Answer;
  std::optional<Answer> answer(const http::Request& request) {
    std::lock_guard lock(mutex_);
    if (down_) return Answer(unavailable("connection refused"));
    if (request.method == "GET") {
      if (lease_.is_null()) return reply(404, testing::status(404, "NotFound"));
      return reply(200, lease_);
    }
    const Json body = Json::parse(request.body);
    if (request.method == "POST") {
      if (!lease_.is_null()) return reply(409, testing::status(409, "AlreadyExists"));
    } else if (body["metadata"]["resourceVersion"] != lease_["metadata"]["resourceVersion"]) {
      return reply(409, testing::status(409, "Conflict"));
    }
    ++writes_;
    store(body);
    return reply(200, lease_);
  }
  static Answer reply(int status, const Json& body) { return http::Response{status, {}, body.dump()}; }
  void store(const Json& change) {
    if (lease_.is_null()) lease_ = {{"kind", "Lease"}};
    lease_.merge_patch(change);
    lease_["metadata"]["resourceVersion"] = std::to_string(++version_);
  }

  mutable std::mutex mutex_;
  Json lease_;
  int version_ = 0;
  std::atomic<bool> down_ = false;
  std::atomic<int> writes_ = 0;
};

struct Candidate {
  Candidate(const Client& client, const Clock& clock, const std::string& identity)
      : elector(client, clock, [] { return 0.0; }, {{"ns", "operator"}, identity},
                {[this] { acquired = true; }, [this] { lost = true; }}),
        thread([this](std::stop_token stop) { ended_well = elector.run(stop).ok(); }) {}
  void stop() {
    thread.request_stop();
    thread.join();
  }

  std::atomic<bool> acquired = false;
  std::atomic<bool> lost = false;
  std::atomic<bool> ended_well = false;
  LeaderElector elector;
  std::jthread thread;
};

struct Election {
  std::shared_ptr<ScriptedTransport> transport = std::make_shared<ScriptedTransport>();
  LeaseServer server{*transport};
  sluice::testing::ManualClock clock;
  Client client{transport, clock};

  // Lets `sleepers` candidates finish one round.
  void round(int sleepers = 1) {
    const std::size_t before = transport->requests().size();
    clock.advance(2s);
    REQUIRE(transport->wait_for_requests(before + 1));
    clock.wait_for_sleepers(sleepers);
  }
};

TEST_CASE_METHOD(Election, "the first candidate makes the lease, leads, renews with one request, and gives it back") {
  Candidate one(client, clock, "one");
  clock.wait_for_sleepers(1);
  CHECK(one.acquired);
  CHECK(one.elector.is_leader());
  CHECK(server.holder() == "one");
  CHECK(server.transitions() == 0);
  CHECK(server.lease()["spec"]["leaseDurationSeconds"] == 15);
  const std::string acquired = server.lease()["spec"]["acquireTime"];

  const std::size_t before = transport->requests().size();
  round();
  CHECK(transport->requests().size() == before + 1);
  CHECK(server.lease()["spec"]["renewTime"] != acquired);
  CHECK(server.lease()["spec"]["acquireTime"] == acquired);

  one.stop();
  CHECK(one.ended_well);
  CHECK_FALSE(one.lost);
  CHECK_FALSE(one.elector.is_leader());
  CHECK(server.holder().empty());
}

TEST_CASE_METHOD(Election, "a second candidate waits while the lease changes, and takes over when it stands still") {
  server.put("other", 15);
  Candidate one(client, clock, "one");
  clock.wait_for_sleepers(1);
  for (int i = 0; i < 6; ++i) round();  // 12 s of standing still
  CHECK_FALSE(one.acquired);
  server.put("other", 15);  // alive after all: the wait starts again
  for (int i = 0; i < 7; ++i) round();
  CHECK_FALSE(one.acquired);
  round();
  round();
  CHECK(one.acquired);
  CHECK(server.holder() == "one");
  CHECK(server.transitions() == 4);
}

TEST_CASE_METHOD(Election, "the holder's own promise counts, and a lease given back is free at once") {
  SECTION("a longer promise") {
    server.put("other", 60);
    Candidate one(client, clock, "one");
    clock.wait_for_sleepers(1);
    for (int i = 0; i < 20; ++i) round();
    CHECK_FALSE(one.acquired);
  }
  SECTION("given back") {
    server.put("", 1);
    Candidate one(client, clock, "one");
    clock.wait_for_sleepers(1);
    CHECK(one.acquired);
  }
}

TEST_CASE_METHOD(Election, "a leader that cannot renew gives up before the lease runs out") {
  Candidate one(client, clock, "one");
  clock.wait_for_sleepers(1);
  REQUIRE(one.acquired);
  server.set_down(true);
  for (int i = 0; i < 4; ++i) round();
  CHECK_FALSE(one.lost);
  clock.advance(2s);  // 10 s since the last renewal
  one.thread.join();
  CHECK(one.lost);
  CHECK_FALSE(one.elector.is_leader());
  CHECK_FALSE(one.ended_well);
}

TEST_CASE_METHOD(Election, "a leader that was stopped for longer than its lease knows that before its next round") {
  LeaderElector elector(client, clock, [] { return 0.0; }, {{"ns", "operator"}, "one"}, {[] {}, [] {}});
  REQUIRE(elector.step().ok());
  REQUIRE(elector.is_leader());
  clock.advance(14s);
  CHECK(elector.is_leader());
  clock.advance(1s);
  CHECK_FALSE(elector.is_leader());
}

TEST_CASE_METHOD(Election, "a short outage is survived") {
  Candidate one(client, clock, "one");
  clock.wait_for_sleepers(1);
  server.set_down(true);
  for (int i = 0; i < 3; ++i) round();
  server.set_down(false);
  for (int i = 0; i < 10; ++i) round();
  CHECK(one.elector.is_leader());
  CHECK_FALSE(one.lost);
}

TEST_CASE_METHOD(Election, "a leader that sees another holder gives up at once") {
  Candidate one(client, clock, "one");
  clock.wait_for_sleepers(1);
  server.put("usurper", 15);
  clock.advance(2s);
  one.thread.join();
  CHECK(one.lost);
  CHECK(server.holder() == "usurper");
}

TEST_CASE_METHOD(Election, "a leader goes on after an unimportant change of its lease by another client") {
  Candidate one(client, clock, "one");
  clock.wait_for_sleepers(1);
  server.put("one", 15);
  round();
  CHECK(one.elector.is_leader());
  CHECK_FALSE(one.lost);
}

TEST_CASE_METHOD(
    Election, "a lease that changed since the last renewal is given back if the holder is unchanged, and only then") {
  const auto [holder, after_the_stop] = GENERATE(table<std::string, std::string>({
      {"one", ""},  // a renewal whose answer the stop cut off
      {"usurper", "usurper"},
  }));
  Candidate one(client, clock, "one");
  clock.wait_for_sleepers(1);
  server.put(holder, 15);
  one.stop();
  CHECK(one.ended_well);
  CHECK(server.holder() == after_the_stop);
}

TEST_CASE_METHOD(Election, "of two candidates one leads, and the other follows when the first stops") {
  Candidate one(client, clock, "one");
  clock.wait_for_sleepers(1);
  Candidate two(client, clock, "two");
  clock.wait_for_sleepers(2);
  CHECK(one.acquired);
  CHECK_FALSE(two.acquired);
  one.stop();
  round();
  CHECK(two.acquired);
  CHECK(server.holder() == "two");
}

}  // namespace
}  // namespace sluice::kube
