// One suite for every implementation of Transport: whatever is written against the interface may be given any of them.
// Waits are for events that must happen, up to kConformancePatience. A limit in milliseconds is the best of several
// tries, since a busy machine only ever makes it longer.
#include <algorithm>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/http/bearer_token.h"
#include "src/http/testing/server_script.h"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using Kind = ServerStep::Kind;
using Script = std::vector<ServerStep>;

constexpr auto kConformancePatience = 20s;

class CollectingSink final : public ByteSink {
 public:
  explicit CollectingSink(ScriptProgress& progress, std::string refused = "")
      : progress_(progress), refused_(std::move(refused)) {}
  Result<void> on_bytes(std::string_view bytes) override {
    text += bytes;
    progress_.client_saw_bytes = true;
    if (!refused_.empty() && text.find(refused_) != std::string::npos) return invalid_argument("refused by the sink");
    return {};
  }
  std::string text;

 private:
  ScriptProgress& progress_;
  std::string refused_;
};

// One subject, one script per request.
struct Trial {
  Trial(const Subject& subject, std::vector<Script> scripts) : endpoint(subject.open(std::move(scripts), progress)) {
    REQUIRE(endpoint->transport());
  }
  Result<Response> send(std::chrono::milliseconds timeout = kConformancePatience, std::stop_token stop = {}) {
    return endpoint->transport()->send(kScriptedRequest, timeout, std::move(stop));
  }
  Result<Response> stream(ByteSink& sink, std::chrono::milliseconds idle = kConformancePatience,
                          std::stop_token stop = {}) {
    return endpoint->transport()->stream(kScriptedRequest, sink, idle, std::move(stop));
  }

  ScriptProgress progress;
  std::unique_ptr<ScriptedEndpoint> endpoint;
};

const ServerStep kBegin{Kind::kBeginStream};
const ServerStep kEnd{Kind::kEnd};
const ServerStep kSilence{Kind::kSilence};
ServerStep piece(std::string bytes) { return {Kind::kPiece, std::move(bytes)}; }
ServerStep answer(int status, std::string body, Headers headers = {}) {
  return {Kind::kAnswer, std::move(body), status, std::move(headers)};
}

ErrorCode code_of(const Result<Response>& response) {
  REQUIRE_FALSE(response.ok());
  return response.error().code();
}

TEST_CASE("conformance: any status is an answer, with its headers and its body") {
  for (const Subject& subject : all_subjects()) {
    INFO(subject.name);
    Trial trial(subject,
                {{answer(200, "fine")}, {answer(429, "slow down", {{"Retry-After", "7"}})}, {answer(410, "old")}});
    const auto fine = trial.send();
    REQUIRE(fine.ok());
    CHECK(fine->body == "fine");
    const auto throttled = trial.send();
    REQUIRE(throttled.ok());
    CHECK(throttled->status == 429);
    CHECK(throttled->headers.at("retry-after") == "7");
    CHECK(throttled->body == "slow down");
    CHECK(trial.send()->status == 410);
  }
}

TEST_CASE("conformance: an event split anywhere arrives whole, and before the server goes on") {
  const std::string event = R"({"type":"ADDED","object":{"metadata":{"name":"ä"}}})"
                            "\n";
  for (const Subject& subject : all_subjects()) {
    INFO(subject.name);
    Script script = {kBegin};
    std::string want;
    for (std::size_t cut = 1; cut < event.size(); ++cut) {
      script.push_back(piece(event.substr(0, cut)));
      if (cut == 1) script.push_back({Kind::kGate});
      script.push_back(piece(event.substr(cut)));
      want += event;
    }
    script.push_back(kEnd);
    Trial trial(subject, {script});
    CollectingSink sink(trial.progress);
    const auto response = trial.stream(sink);
    REQUIRE(response.ok());
    CHECK(response->status == 200);
    CHECK(response->body.empty());
    CHECK(sink.text == want);
  }
}

TEST_CASE("conformance: 410 in the stream is body, 410 as status is not") {
  const std::string gone = R"({"type":"ERROR","object":{"kind":"Status","code":410}})"
                           "\n";
  for (const Subject& subject : all_subjects()) {
    INFO(subject.name);
    Trial trial(subject, {{kBegin, piece(gone), kEnd}, {answer(410, "gone")}});
    CollectingSink sink(trial.progress);
    CHECK(trial.stream(sink)->status == 200);
    CHECK(sink.text == gone);
    const auto refused = trial.stream(sink);
    REQUIRE(refused.ok());
    CHECK(refused->status == 410);
    CHECK(refused->body == "gone");
    CHECK(sink.text == gone);
  }
}

TEST_CASE("conformance: a stream that is not chunked goes to the sink, too") {
  for (const Subject& subject : all_subjects()) {
    INFO(subject.name);
    Trial trial(subject, {{answer(200, "whole")}});
    CollectingSink sink(trial.progress);
    const auto response = trial.stream(sink);
    REQUIRE(response.ok());
    CHECK(sink.text == "whole");
    CHECK(response->body.empty());
  }
}

TEST_CASE("conformance: silence beyond the limit is DeadlineExceeded, in a stream and in a request") {
  for (const Subject& subject : all_subjects()) {
    INFO(subject.name);
    Trial trial(subject, {{kBegin, piece("x"), kSilence}, {kSilence}});
    CollectingSink sink(trial.progress);
    CHECK(code_of(trial.stream(sink, 1s)) == ErrorCode::kDeadlineExceeded);
    CHECK(sink.text == "x");
    CHECK(code_of(trial.send(200ms)) == ErrorCode::kDeadlineExceeded);
  }
}

TEST_CASE("conformance: a connection half closed or lost in the middle of a piece is an error, not an end") {
  for (const Subject& subject : all_subjects()) {
    for (const Kind cut : {Kind::kHalfClose, Kind::kHangUp}) {
      INFO(subject.name << ", " << (cut == Kind::kHangUp ? "hung up" : "half closed"));
      Trial trial(subject, {{kBegin, piece("whole\n"), {cut}}});
      CollectingSink sink(trial.progress);
      CHECK(code_of(trial.stream(sink)) == ErrorCode::kUnavailable);
      CHECK(sink.text == "whole\n");
    }
  }
}

TEST_CASE("conformance: the sink's error ends the stream") {
  for (const Subject& subject : all_subjects()) {
    INFO(subject.name);
    Trial trial(subject, {{kBegin, piece("refuse this"), {Kind::kGate}, piece("more"), kEnd}});
    CollectingSink sink(trial.progress, "refuse");
    const auto response = trial.stream(sink);
    REQUIRE_FALSE(response.ok());
    CHECK(response.error().message() == "refused by the sink");
    CHECK(sink.text == "refuse this");
  }
}

TEST_CASE("conformance: a stop request ends whatever waits, within 100 ms, and hangs up") {
  for (const Subject& subject : all_subjects()) {
    for (const bool is_stream : {false, true}) {
      INFO(subject.name << (is_stream ? ", stream" : ", request"));
      auto best = std::chrono::steady_clock::duration::max();
      for (int attempt = 0; attempt < 5 && best >= 100ms; ++attempt) {
        Trial trial(subject, {{kBegin, kSilence}});
        CollectingSink sink(trial.progress);
        std::stop_source stop;
        std::chrono::steady_clock::time_point asked;
        std::thread stopper([&] {
          while (!trial.progress.server_waits) std::this_thread::yield();
          asked = std::chrono::steady_clock::now();
          stop.request_stop();
        });
        const auto response = is_stream ? trial.stream(sink, kConformancePatience, stop.get_token())
                                        : trial.send(kConformancePatience, stop.get_token());
        const auto returned = std::chrono::steady_clock::now();
        stopper.join();
        CHECK(code_of(response) == ErrorCode::kCancelled);
        best = std::min(best, returned - asked);
        const auto deadline = returned + kConformancePatience;
        while (subject.has_socket && !trial.progress.client_left && std::chrono::steady_clock::now() < deadline)
          std::this_thread::sleep_for(1ms);
        CHECK((!subject.has_socket || trial.progress.client_left));
      }
      CHECK(best < 100ms);
    }
    std::stop_source stopped;
    stopped.request_stop();
    Trial trial(subject, {});
    CHECK(code_of(trial.send(kConformancePatience, stopped.get_token())) == ErrorCode::kCancelled);
  }
}

TEST_CASE("conformance: a rejected token is replaced and the request repeated, unary or not, once") {
  struct Rotating final : TokenSource {
    Result<std::string> token() override { return "token-" + std::to_string(generation); }
    void rejected(const std::string& token) override {
      CHECK(token == "token-" + std::to_string(generation));
      ++generation;
    }
    int generation = 1;
  };
  for (const Subject& subject : all_subjects()) {
    INFO(subject.name);
    Trial trial(subject, {{answer(401, "who?")},
                          {answer(200, "welcome")},
                          {answer(401, "who?")},
                          {kBegin, piece("event\n"), kEnd},
                          {answer(401, "no")},
                          {answer(401, "never")}});
    const auto source = std::make_shared<Rotating>();
    const auto transport = with_bearer_token(trial.endpoint->transport(), source);
    CHECK(transport->send(kScriptedRequest, kConformancePatience, {})->body == "welcome");
    CollectingSink sink(trial.progress);
    CHECK(transport->stream(kScriptedRequest, sink, kConformancePatience, {})->status == 200);
    CHECK(sink.text == "event\n");
    CHECK(source->generation == 3);
    CHECK(transport->send(kScriptedRequest, kConformancePatience, {})->body == "never");
  }
}

TEST_CASE("conformance: a slow reader slows the server down instead of filling memory") {
  constexpr std::size_t kPiece = 256 << 10;
  constexpr int kPieces = 200;  // 50 MiB, far more than the sockets' buffers hold
  for (const Subject& subject : all_subjects()) {
    INFO(subject.name);
    Trial trial(subject, {{kBegin, {Kind::kRepeat, std::string(kPiece, 'x'), 200, {}, kPieces}, kEnd}});
    struct Sink final : ByteSink {
      Sink(ScriptProgress& progress, bool holds) : progress(progress), holds(holds) {}
      Result<void> on_bytes(std::string_view bytes) override {
        progress.client_saw_bytes = true;
        if (received == 0 && holds) {
          // Hold the first piece until the server cannot send any more.
          int before = -1;
          while (before != progress.pieces_sent) {
            before = progress.pieces_sent;
            std::this_thread::sleep_for(300ms);
          }
          sent_while_held = before;
        }
        received += bytes.size();
        return {};
      }
      ScriptProgress& progress;
      const bool holds;
      std::size_t received = 0;
      int sent_while_held = 0;
    } sink(trial.progress, subject.has_socket);
    const auto response = trial.stream(sink, 60s);
    REQUIRE(response.ok());
    CHECK(sink.received == kPiece * kPieces);
    CHECK(sink.sent_while_held < kPieces / 2);
  }
}

}  // namespace
}  // namespace sluice::http
