#include "src/kube/event_recorder.h"

#include <atomic>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/testing/scripted_transport.h"
#include "src/kube/testing/objects.h"

namespace sluice::kube {
namespace {

using namespace std::chrono_literals;
using http::testing::ScriptedTransport;

struct RecordedEvents {
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>();
  sluice::testing::ManualClock clock;
  Client client{server, clock};

  RecordedEvents() {
    server->respond_with([](const http::Request&) {
      return ScriptedTransport::Answer(http::Response{200, {}, R"({"kind": "Event"})"});
    });
  }
  static EventRecorderOptions options(std::size_t capacity = 1000) {
    EventRecorderOptions options;
    options.instance = "operator-0";
    options.queue_capacity = capacity;
    return options;
  }
  static Event scaled_up(const std::string& note, const std::string& job = "vision") {
    return {kTrainingJobs, {"team", job}, "uid-1", EventType::kNormal, "ScaledUp", "Scale", note};
  }
  http::Request asked(std::size_t index) {
    REQUIRE(server->wait_for_requests(index + 1));
    return server->requests().at(index);
  }
};

TEST_CASE_METHOD(RecordedEvents, "an event says what, about what, by whom and when") {
  EventRecorder recorder(client, clock, options());
  recorder.start();
  recorder.record(scaled_up("from 2 to 3 workers"));
  const http::Request request = asked(0);
  CHECK(request.method == "POST");
  CHECK(request.target == "/apis/events.k8s.io/v1/namespaces/team/events?fieldValidation=Strict");
  Json event = Json::parse(request.body);
  CHECK_THAT(event["metadata"]["name"].get<std::string>(), Catch::StartsWith("vision."));
  event["metadata"].erase("name");
  CHECK(event == Json{{"apiVersion", "events.k8s.io/v1"},
                      {"kind", "Event"},
                      {"metadata", {{"namespace", "team"}}},
                      {"eventTime", "2026-01-01T00:00:00.000000Z"},
                      {"reportingController", "sluice.dev/operator"},
                      {"reportingInstance", "operator-0"},
                      {"regarding",
                       {{"apiVersion", "sluice.dev/v1alpha1"},
                        {"kind", "TrainingJob"},
                        {"namespace", "team"},
                        {"name", "vision"},
                        {"uid", "uid-1"}}},
                      {"type", "Normal"},
                      {"reason", "ScaledUp"},
                      {"action", "Scale"},
                      {"note", "from 2 to 3 workers"}});
}

TEST_CASE_METHOD(RecordedEvents, "repetitions become a series, written at once the first time and then once a minute") {
  EventRecorder recorder(client, clock, options());
  recorder.start();
  recorder.record(scaled_up("a"));
  recorder.record(scaled_up("b"));
  const http::Request second = asked(1);
  CHECK(second.method == "PATCH");
  const std::string name = Json::parse(asked(0).body)["metadata"]["name"];
  CHECK_THAT(second.target, Catch::StartsWith("/apis/events.k8s.io/v1/namespaces/team/events/" + name));
  CHECK(Json::parse(second.body) ==
        Json{{"series", {{"count", 2}, {"lastObservedTime", "2026-01-01T00:00:00.000000Z"}}}});

  recorder.record(scaled_up("c"));
  clock.advance(1min);
  recorder.record(scaled_up("d"));
  CHECK(Json::parse(asked(2).body)["series"]["count"] == 4);
}

TEST_CASE_METHOD(RecordedEvents, "another object, reason or type, or a long silence, is another event") {
  EventRecorder recorder(client, clock, options());
  recorder.start();
  recorder.record(scaled_up("a"));
  recorder.record(scaled_up("a", "speech"));
  Event warning = scaled_up("a");
  warning.type = EventType::kWarning;
  recorder.record(warning);
  Event reborn = scaled_up("a");
  reborn.uid = "uid-2";
  recorder.record(reborn);
  asked(3);
  clock.advance(6min);
  recorder.record(scaled_up("a"));
  for (std::size_t i = 0; i < 5; ++i) CHECK(asked(i).method == "POST");
}

TEST_CASE_METHOD(RecordedEvents, "a failed first write is tried anew with the next event of its kind") {
  int posts = 0;
  server->respond_with([&](const http::Request&) {
    return ScriptedTransport::Answer(http::Response{posts++ == 0 ? 403 : 200, {}, R"({"kind": "Event"})"});
  });
  EventRecorder recorder(client, clock, options());
  recorder.start();
  recorder.record(scaled_up("a"));
  recorder.record(scaled_up("b"));
  CHECK(asked(1).method == "POST");
}

TEST_CASE_METHOD(RecordedEvents, "without a thread, every step writes one event") {
  EventRecorder recorder(client, clock, options());
  recorder.record(scaled_up("a"));
  recorder.record(scaled_up("a", "speech"));
  CHECK(server->requests().empty());
  CHECK(recorder.step());
  CHECK(server->requests().size() == 1);
  CHECK(recorder.step());
  CHECK_FALSE(recorder.step());
  CHECK(server->requests().size() == 2);
}

TEST_CASE_METHOD(RecordedEvents, "a full queue drops and never blocks") {
  std::atomic<bool> release = false;
  server->respond_with([&](const http::Request&) {
    while (!release) std::this_thread::yield();
    return ScriptedTransport::Answer(http::Response{200, {}, R"({"kind": "Event"})"});
  });
  EventRecorder recorder(client, clock, options(2));
  recorder.start();
  recorder.record(scaled_up("first"));
  REQUIRE(server->wait_for_requests(1));  // the writer is busy with it
  for (int i = 0; i < 5; ++i) recorder.record(scaled_up("more"));
  CHECK(recorder.dropped() == 3);
  release = true;
}

TEST_CASE_METHOD(RecordedEvents, "events of cluster-scoped objects go to default, long notes are cut at a character") {
  EventRecorder recorder(client, clock, options());
  recorder.start();
  std::string note(1023, 'x');
  recorder.record({kNodes, {"", "n1"}, "", EventType::kWarning, "NodeFull", "Place", note + "\xC3\xA4tail"});
  const Json event = Json::parse(asked(0).body);
  CHECK(event["metadata"]["namespace"] == "default");
  CHECK_FALSE(event["regarding"].contains("namespace"));
  CHECK(event["type"] == "Warning");
  CHECK(event["note"] == note);
}

}  // namespace
}  // namespace sluice::kube
