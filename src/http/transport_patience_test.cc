// Half a minute without a byte is nothing unusual for a watch: client libraries tend to have a limit of just that.
#include <thread>

#include "src/base/testing/catch.h"
#include "src/http/testing/server_script.h"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using Kind = ServerStep::Kind;

class CountingSink final : public ByteSink {
 public:
  Result<void> on_bytes(std::string_view bytes) override {
    received += bytes.size();
    return {};
  }
  std::size_t received = 0;
};

TEST_CASE("conformance: a stream outlives 31 seconds of silence when its limit says so, in every implementation") {
  struct Outcome {
    std::string name;
    Result<Response> response = internal_error("not run");
    std::size_t received = 0;
  };
  std::vector<Outcome> outcomes;
  for (const Subject& subject : all_subjects()) {
    outcomes.push_back({subject.name});
  }
  std::vector<std::thread> threads;
  for (Outcome& outcome : outcomes) {
    threads.emplace_back([&outcome] {
      for (const Subject& subject : all_subjects()) {
        if (subject.name != outcome.name) continue;
        ScriptProgress progress;
        const std::vector<ServerStep> script = {
            {Kind::kBeginStream}, {Kind::kPiece, "before"}, {Kind::kPause, ""}, {Kind::kPiece, "after"}, {Kind::kEnd}};
        const auto endpoint = subject.open({script}, progress);
        CountingSink sink;
        outcome.response = endpoint->transport()->stream(kScriptedRequest, sink, 120s, {});
        outcome.received = sink.received;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Outcome& outcome : outcomes) {
    INFO(outcome.name << ": " << (outcome.response.ok() ? "ok" : outcome.response.error().to_string()));
    CHECK(outcome.response.ok());
    CHECK(outcome.received == std::string("beforeafter").size());
  }
}

}  // namespace
}  // namespace sluice::http
