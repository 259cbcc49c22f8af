#include "src/kube/example/copies.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/faults.h"
#include "src/kube/fake/api_server.h"
#include "src/kube/fake/fake_transport.h"
#include "src/kube/fake/watch_session.h"
#include "src/kube/watch.h"

// The controller against the fake API server, in one thread: every step happens where the test says so.
namespace sluice::kube::example {
namespace {

using namespace std::chrono_literals;

Json original(int copies, const std::string& text, const std::string& uid = "uid-1") {
  return {{"metadata",
           {{"namespace", "default"},
            {"name", "letter"},
            {"uid", uid},
            {"labels", {{"example/copies", std::to_string(copies)}}}}},
          {"data", {{"text", text}}}};
}

std::vector<std::string> described(const World& world) {
  std::vector<std::string> all;
  for (const Action& action : reconcile(world)) all.push_back(action.to_string());
  return all;
}

TEST_CASE("the example decides by the world alone") {
  const auto point = [](const Json& object) { return std::make_shared<const Json>(object); };
  World world{point(original(2, "hello")), {}};
  CHECK(described(world) ==
        std::vector<std::string>{"apply ConfigMap default/letter-copy-0", "apply ConfigMap default/letter-copy-1"});
  std::vector<Action> actions = reconcile(world);
  for (const Action& action : actions) {
    Json copy = action.body;
    copy["metadata"]["name"] = action.key.name;
    copy["metadata"]["namespace"] = action.key.namespace_;
    copy["metadata"]["uid"] = "uid-" + action.key.name;
    world.copies.push_back(point(copy));
  }
  CHECK(described(world).empty());  // what it wanted is there: it wants nothing more
  world.original = point(original(1, "hello"));
  CHECK(described(world) == std::vector<std::string>{"delete ConfigMap default/letter-copy-1"});
  CHECK(reconcile(world)[0].uid == "uid-letter-copy-1");
  world.original = nullptr;
  CHECK(described(world).empty());  // the garbage collector's work
}

struct Simulation {
  sluice::testing::ManualClock clock;
  fake::ApiServer server{clock};
  http::Fault fault;
  int writes = 0;
  Client client{http::with_faults(std::make_shared<fake::FakeTransport>(server), clock,
                                  [this](const http::Request& request) {
                                    writes += request.method != "GET";
                                    return std::exchange(fault, {});
                                  }),
                clock};
  Informer informer{client, clock, [] { return 0.5; }, kConfigMaps};
  Controller controller{client, clock, informer};
  std::unique_ptr<fake::WatchSession> session;
  std::optional<WatchDecoder> decoder;

  // Opens the informer's watch, or delivers what the server has for it.
  void deliver() {
    if (!session) {
      const ReflectorStep step = informer.reflector().next();
      REQUIRE(step.kind == ReflectorStep::Kind::kWatch);
      http::Response refusal;
      session = server.watch(client.watch_request(kConfigMaps, step.watch), nullptr, refusal);
      REQUIRE(session);
      decoder.emplace("watch", [this](WatchEvent&& event) { return informer.reflector().on_event(std::move(event)); });
    }
    while (const auto line = session->next_line()) REQUIRE(decoder->on_bytes(*line).ok());
  }
  void settle() {
    do deliver();
    while (controller.step());
  }
  std::size_t count() { return server.all(kConfigMaps).size(); }
};

TEST_CASE_METHOD(Simulation, "the example brings copies, keeps them right, and stops writing") {
  server.create(kConfigMaps, original(3, "hello"));
  settle();
  settle();
  CHECK(count() == 4);
  CHECK(writes == 3);
  server.modify(kConfigMaps, {"default", "letter"}, [](Json& object) { object["data"]["text"] = "goodbye"; });
  server.remove(kConfigMaps, {"default", "letter-copy-1"});
  settle();
  settle();
  CHECK(count() == 4);
  CHECK((*server.get(kConfigMaps, {"default", "letter-copy-2"}))["data"]["text"] == "goodbye");
  CHECK(writes == 6);
}

TEST_CASE_METHOD(Simulation, "the example survives a lost answer: the outcome is unknown, the name is not") {
  server.create(kConfigMaps, original(2, "hello"));
  deliver();
  fault.lose_answer = true;
  settle();
  clock.advance(10ms);
  settle();
  settle();
  CHECK(count() == 3);
}

}  // namespace
}  // namespace sluice::kube::example
