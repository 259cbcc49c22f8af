#include "src/http/write_limit.h"

#include <atomic>
#include <thread>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/http/testing/scripted_transport.h"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::ScriptedTransport;

constexpr auto kTestPatience = 20s;

// A server that answers nothing before it is told to.
struct Fixture {
  std::shared_ptr<ScriptedTransport> server = std::make_shared<ScriptedTransport>();
  std::shared_ptr<Transport> transport = with_write_limit(server, 2);
  std::atomic<int> inside = 0;
  std::atomic<int> most_inside = 0;
  std::atomic<bool> open = false;

  Fixture() {
    server->respond_with([this](const Request& request) -> std::optional<ScriptedTransport::Answer> {
      if (request.method == "GET") return Response{200, {}, ""};
      const int now = ++inside;
      int most = most_inside;
      while (now > most && !most_inside.compare_exchange_weak(most, now)) continue;
      while (!open) std::this_thread::yield();
      --inside;
      return Response{200, {}, ""};
    });
  }
};

TEST_CASE_METHOD(Fixture, "no more writes than allowed are on their way, all arrive, and reads do not wait") {
  std::atomic<int> done = 0;
  std::vector<std::thread> writers;
  for (int i = 0; i < 6; ++i) {
    writers.emplace_back([this, &done] { done += transport->send({"PATCH", "/x"}, kTestPatience, {}).ok(); });
  }
  REQUIRE(server->wait_for_requests(2));
  CHECK(transport->send({"GET", "/x"}, kTestPatience, {}).ok());
  CHECK(transport->send({"POST", "/late"}, 10ms, {}).error().code() == ErrorCode::kDeadlineExceeded);
  std::stop_source stop;
  stop.request_stop();
  CHECK(transport->send({"POST", "/stopped"}, kTestPatience, stop.get_token()).error().code() == ErrorCode::kCancelled);
  open = true;
  for (auto& writer : writers) writer.join();
  CHECK(done == 6);
  CHECK(most_inside == 2);
}

}  // namespace
}  // namespace sluice::http
