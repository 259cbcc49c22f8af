#include "src/executor/kept_calls.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/executor/child_calls.h"
#include "src/executor/python_interpreter.h"
#include "src/executor/testing/memory_store.h"

namespace sluice::executor {
namespace {

using testing::MemoryStore;
using transport::FunctionCall;

struct Fixture {
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  testing::ManualClock clock;
  std::shared_ptr<KeptCalls> kept = std::make_shared<KeptCalls>(store, clock);
  std::vector<std::uint8_t> value;
};

const FunctionCall kCall{.function = "m.f", .version = "1", .arguments = "a", .files = {"/file"}};
constexpr std::uint8_t kValue[] = {1, 2, 3};

TEST_CASE("a result that was kept is found, as long as the files are in the state that they had") {
  Fixture f;
  const auto missed = f.kept->find(kCall, f.value);
  CHECK_FALSE(missed.is_found);
  REQUIRE(missed.files);
  f.kept->keep(kCall, *missed.files, kValue);
  CHECK(f.kept->find(kCall, f.value).is_found);
  CHECK(f.value == std::vector<std::uint8_t>{1, 2, 3});
  f.store->file_bytes = 2;
  CHECK_FALSE(f.kept->find(kCall, f.value).is_found);
}

TEST_CASE("a result is not to be sent where it would not be kept") {
  struct Case {
    const char* story;
    void (*arrange)(MemoryStore&);
    bool is_asked;
  };
  const Case cases[] = {
      {"the disk is full", [](MemoryStore& store) { store.has_room = false; }, true},
      {"a file is not there", [](MemoryStore& store) { store.has_files = false; }, false},
      {"the cache is not open", [](MemoryStore& store) { store.in_use = false; }, false},
  };
  for (const Case& each : cases) {
    INFO(each.story);
    Fixture f;
    each.arrange(*f.store);
    const auto answer = f.kept->find(kCall, f.value);
    CHECK_FALSE(answer.is_found);
    CHECK_FALSE(answer.files);
    CHECK((f.store->asked > 0) == each.is_asked);
  }
}

TEST_CASE("functions beyond the bound are not asked about again") {
  Fixture f;
  FunctionCall call = kCall;
  for (std::size_t i = 0; i < KeptCalls::kFunctionsMax; ++i) {
    call.function = std::to_string(i);
    CHECK(f.kept->find(call, f.value).files);
  }
  call.function = "one more";
  CHECK(f.kept->find(call, f.value).rest == KeptCalls::kRestBeyondFunctions);
  CHECK(f.kept->report({{.function = "one more", .calls = 1}}).empty());
}

TEST_CASE("a batch's calls are told in people's terms, and its errors are counted") {
  Fixture f;
  f.kept->report({{.function = "m.f", .calls = 10, .call_seconds = 20}});
  const auto costs = f.kept->report(
      {{.function = "m.f", .calls = 1, .call_seconds = 2, .hits = 3, .hit_seconds = 1, .hit_bytes = 30, .damaged = 2}});
  REQUIRE(costs.size() == 1);
  CHECK(costs[0] == transport::KeptCost{"m.f", 4, 3, 5, 30});
  CHECK(f.store->errors == 2);
}

TEST_CASE("a child is answered, and keeps what it was told to keep") {
  Fixture f;
  ChildCalls calls(f.kept);
  auto sockets = *connected_sockets();
  transport::FrameSocket ours(std::move(sockets.ours)), theirs(std::move(sockets.theirs));
  const auto soon = [] { return std::chrono::steady_clock::now() + std::chrono::seconds(10); };
  const auto ask = [&](std::uint64_t id) {
    REQUIRE(calls.answer({.id = id, .call = kCall}, "a", ours, soon()).ok());
    return *theirs.receive(soon());
  };
  calls.begin();
  CHECK(ask(1).json.find(R"("keeps":true)") != std::string::npos);
  SECTION("once") {
    calls.keep({.id = 1}, "value");
    const auto found = ask(2);
    CHECK(found.json.find(R"("is_found":true)") != std::string::npos);
    CHECK(found.blob == "value");
    calls.keep({.id = 1}, "another value");
    CHECK(f.store->values.begin()->second.size() == std::string("value").size());
  }
  SECTION("not under a number that it has not asked under") { calls.keep({.id = 7}, "value"); }
  SECTION("not after its batch") {
    calls.begin();
    calls.keep({.id = 1}, "value");
    CHECK(f.store->values.empty());
  }
}

TEST_CASE("where there is no cache a child is told that there is no result") {
  ChildCalls calls(nullptr);
  auto sockets = *connected_sockets();
  transport::FrameSocket ours(std::move(sockets.ours)), theirs(std::move(sockets.theirs));
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  REQUIRE(calls.answer({.id = 1, .call = kCall}, "a", ours, soon).ok());
  CHECK(theirs.receive(soon)->json.find(R"("is_found":false)") != std::string::npos);
  calls.keep({.id = 1}, "value");
  CHECK(calls.report({{.function = "m.f"}}).empty());
}

}  // namespace
}  // namespace sluice::executor
