#include "src/http/recording.h"

#include "src/base/testing/catch.h"
#include "src/http/testing/scripted_transport.h"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::ScriptedStream;
using testing::ScriptedTransport;

struct CollectingSink final : ByteSink {
  Result<void> on_bytes(std::string_view bytes) override {
    pieces.emplace_back(bytes);
    return {};
  }
  std::vector<std::string> pieces;
};

struct Fixture {
  std::shared_ptr<Recording> recording = std::make_shared<Recording>();

  Fixture() {
    const auto server = std::make_shared<ScriptedTransport>();
    server->answer(201, "made", {{"X-One", "1"}});
    server->answer(unavailable("refused"));
    server->answer(ScriptedStream{{"ab", "c"}, ScriptedStream::Ending::kFail});
    const auto transport = with_recording(server, recording);
    (void)transport->send({"POST", "/things", {{"authorization", "Bearer secret"}, {"X-Two", "2"}}, "{}"}, 1s, {});
    (void)transport->send({"GET", "/things"}, 1s, {});
    CollectingSink sink;
    (void)transport->stream({"GET", "/things?watch=true"}, sink, 1s, {});
    CHECK(sink.pieces == std::vector<std::string>{"ab", "c"});
  }
};

TEST_CASE_METHOD(Fixture, "everything is written down but the credentials") {
  const auto exchanges = recording->exchanges();
  REQUIRE(exchanges.size() == 3);
  CHECK(exchanges[0].request.headers == Headers{{"X-Two", "2"}});
  CHECK(exchanges[0].outcome->status == 201);
  CHECK(exchanges[1].outcome.error().code() == ErrorCode::kUnavailable);
  CHECK(exchanges[2].pieces == std::vector<std::string>{"ab", "c"});
  CHECK_THAT(recording->to_json_lines(), !Catch::Contains("secret"));
}

TEST_CASE_METHOD(Fixture,
                 "a recording that went through a file plays back as it was, each exchange once, in any order") {
  const auto read = Recording::parse(recording->to_json_lines());
  REQUIRE(read.ok());
  const auto transport = replay(**read);
  CHECK(transport->send({"GET", "/things"}, 1s, {}).error().code() == ErrorCode::kUnavailable);
  const auto made = transport->send({"POST", "/things", {}, "{}"}, 1s, {});
  REQUIRE(made.ok());
  CHECK(made->headers.at("x-one") == "1");
  CHECK(made->body == "made");
  CollectingSink sink;
  const auto ended = transport->stream({"GET", "/things?watch=true"}, sink, 1s, {});
  CHECK(ended.error().message() == "connection lost");
  CHECK(sink.pieces == std::vector<std::string>{"ab", "c"});
  CHECK(transport->send({"POST", "/things", {}, "{}"}, 1s, {}).error().code() == ErrorCode::kInternal);
  CHECK(transport->send({"POST", "/things", {}, "other"}, 1s, {}).error().code() == ErrorCode::kInternal);
}

TEST_CASE("a recording is bounded, and says what it left out") {
  Recording small(10);
  small.add({{"GET", "/123"}, false, {}, Response{200, {}, "123456"}});
  small.add({{"GET", "/123"}});
  CHECK(small.exchanges().size() == 1);
  CHECK(small.dropped() == 1);
}

TEST_CASE("what is no recording is named by its line") {
  for (const char* text : {"\nnonsense\n", "\n{}\n", "\n{\"request\":{\"method\":1}}"}) {
    const auto read = Recording::parse(text);
    REQUIRE_FALSE(read.ok());
    CHECK(read.error().code() == ErrorCode::kDataLoss);
    CHECK_THAT(read.error().message(), Catch::StartsWith("line 2: "));
  }
}

}  // namespace
}  // namespace sluice::http
