// Questions and answers over a real socket, and what becomes of them when an end fails.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/transport/unary_client.h"
#include "src/transport/unary_server.h"

namespace sluice::transport {
namespace {

using Bytes = std::vector<std::uint8_t>;
using namespace std::chrono_literals;

constexpr auto kPatience = 30s;  // of what must succeed
constexpr std::size_t kBytesMax = std::size_t{4} << 20;

// Answers with the method's name and the question behind it, unless it is told to keep the calls.
class Echo final : public UnaryHandler {
 public:
  void received(std::shared_ptr<UnaryCall> call, const std::string& method, Payload question) override {
    std::lock_guard lock(mutex_);
    if (keeps) {
      kept.push_back(std::move(call));
      changed_.notify_all();
      return;
    }
    if (method == "/drop") return;
    if (method == "/refuse") return call->refuse(invalid_argument("no such question"));
    if (method == "/full") return call->refuse(Error(ErrorCode::kResourceExhausted, "full"));
    const auto body = std::make_shared<Bytes>(question.bytes());
    question.copy_to(0, *body);
    call->answer(std::span(reinterpret_cast<const std::uint8_t*>(method.data()), method.size()), *body, body);
  }
  void wait_for_kept(std::size_t count) {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, 60s, [&] { return kept.size() >= count; }));
  }

  std::atomic<bool> keeps = false;
  std::deque<std::shared_ptr<UnaryCall>> kept;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

// Whether it became true within a minute.
template <typename Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

struct Ends {
  void start(const UnaryLimits& limits = {.question_bytes = kBytesMax}) {
    server.reset();
    auto started = UnaryServer::start(path, limits, echo, counters);
    REQUIRE(started.ok());
    server = std::move(*started);
  }
  Result<std::string> ask(const std::string& method, const std::string& head, const std::string& body,
                          std::chrono::nanoseconds patience = kPatience) const {
    const auto bytes = [](const std::string& text) {
      return std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    };
    SLUICE_TRY(const Payload answer, client->ask(method, bytes(head), bytes(body), patience));
    return answer.text();
  }
  bool wait_for_connections(std::uint64_t count) const {
    return eventually([&] { return counters.connections == count; });
  }

  const sluice::testing::TemporaryDirectory directory;
  const std::string path = (directory.path / "cache.sock").string();
  UnaryCounters counters;
  Echo echo;
  std::unique_ptr<UnaryServer> server;
  std::unique_ptr<UnaryClient> client = UnaryClient::create(path, kBytesMax);
};

TEST_CASE("a question of any length is answered, from many threads over one connection") {
  Ends ends;
  ends.start();
  CHECK(*ends.ask("/echo", "", "") == "/echo");
  CHECK(*ends.ask("/echo", "head", "") == "/echohead");
  const std::string large(3 << 20, 'x');
  CHECK(*ends.ask("/echo", "head ", large) == "/echohead " + large);
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string text = std::to_string(t) + " " + std::to_string(i);
        const auto answer = ends.ask("/echo", text, std::string(1000 * t, 'y'));
        if (!answer.ok() || *answer != "/echo" + text + std::string(1000 * t, 'y')) ++wrong;
      }
    });
  }
  threads.clear();
  CHECK(wrong == 0);
  CHECK(ends.wait_for_connections(1));
}

TEST_CASE("errors come as what they are") {
  Ends ends;
  CHECK(ends.ask("/echo", "", "").error().code() == ErrorCode::kUnavailable);  // there has never been a server
  ends.start();
  CHECK(ends.ask("/refuse", "", "").error() == invalid_argument("no such question"));
  CHECK(ends.ask("/full", "", "").error() == Error(ErrorCode::kResourceExhausted, "full"));
  CHECK(ends.ask("/drop", "", "").error() == internal_error("there was no answer"));
  CHECK(ends.ask("/echo", "", std::string(kBytesMax + 1, 'x')).error().code() == ErrorCode::kResourceExhausted);
  CHECK(*ends.ask("/echo", "", "after") == "/echoafter");
  CHECK(UnaryClient::create(std::string(200, 'x'), 1)->ask("/echo", {}, {}, 1s).error().code() ==
        ErrorCode::kInvalidArgument);
}

TEST_CASE("a caller without an answer goes on after its patience, and the late answer does no harm") {
  Ends ends;
  ends.start();
  ends.echo.keeps = true;
  CHECK(ends.ask("/echo", "", "late", 50ms).error().code() == ErrorCode::kDeadlineExceeded);
  ends.echo.wait_for_kept(1);
  ends.echo.kept.front()->answer({}, {}, nullptr);
  ends.echo.kept.clear();
  ends.echo.keeps = false;
  CHECK(*ends.ask("/echo", "", "next") == "/echonext");
}

TEST_CASE("a server that ends and starts again is found again") {
  Ends ends;
  for (int life = 0; life < 3; ++life) {
    ends.start();
    CHECK(*ends.ask("/echo", "", "here") == "/echohere");
    ends.server.reset();
    CHECK(ends.counters.refused_calls == 0);
    CHECK(ends.ask("/echo", "", "").error().code() == ErrorCode::kUnavailable);
    CHECK(ends.ask("/echo", "", "").error().code() == ErrorCode::kUnavailable);
  }
}

TEST_CASE("a question that waits while the server ends gets an error at once") {
  Ends ends;
  ends.start();
  ends.echo.keeps = true;
  bool is_answered = true;
  std::jthread asking([&] { is_answered = ends.ask("/echo", "", "").ok(); });
  ends.echo.wait_for_kept(1);
  ends.server.reset();
  asking.join();
  CHECK_FALSE(is_answered);
  ends.echo.kept.front()->answer({}, {}, nullptr);  // without a receiver
}

TEST_CASE("calls and connections beyond their bounds are refused, those within them go on") {
  Ends ends;
  constexpr std::size_t kCalls = 3;  // one that is answered counts until gRPC has done with it
  ends.start({.connections = 2, .calls = kCalls, .question_bytes = kBytesMax});
  ends.echo.keeps = true;
  std::atomic<std::size_t> answered = 0;
  std::vector<std::jthread> asking;
  for (std::size_t i = 0; i < kCalls; ++i) {
    asking.emplace_back([&] {
      if (ends.ask("/echo", "", "").value_or("an error") == "kept") ++answered;
    });
  }
  ends.echo.wait_for_kept(kCalls);
  CHECK(ends.ask("/echo", "", "").error().code() == ErrorCode::kResourceExhausted);
  CHECK(ends.counters.refused_calls == 1);
  const std::string kept = "kept";
  for (const auto& call : ends.echo.kept)
    call->answer(std::span(reinterpret_cast<const std::uint8_t*>(kept.data()), kept.size()), {}, nullptr);
  asking.clear();
  CHECK(answered == kCalls);
  ends.echo.keeps = false;
  REQUIRE(eventually([&] { return ends.ask("/echo", "", "").ok(); }));
  auto second = UnaryClient::create(ends.path, kBytesMax);
  CHECK(eventually([&] { return second->ask("/echo", {}, {}, kPatience).ok(); }));  // answered calls may count still
  const auto third = UnaryClient::create(ends.path, kBytesMax);
  CHECK_FALSE(third->ask("/echo", {}, {}, kPatience).ok());
  CHECK(ends.counters.refused_connections == 1);
  CHECK(eventually([&] { return ends.ask("/echo", "", "").value_or("an error") == "/echo"; }));
  second.reset();  // makes room
  CHECK(ends.wait_for_connections(1));
  CHECK(third->ask("/echo", {}, {}, kPatience).ok());
}

TEST_CASE("the socket is its user's, is not taken from a server that lives, and goes with it") {
  Ends ends;
  ends.start();
  struct stat status {};
  REQUIRE(::stat(ends.path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  UnaryCounters counters;
  CHECK(UnaryServer::start(ends.path, {}, ends.echo, counters).error().code() == ErrorCode::kAlreadyExists);
  CHECK(ends.ask("/echo", "", "").ok());
  ends.server.reset();
  CHECK(::stat(ends.path.c_str(), &status) != 0);
}

}  // namespace
}  // namespace sluice::transport
