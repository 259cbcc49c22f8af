#include "src/http/cpprest_transport.h"

#include <atomic>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/http/testing/loopback_server.h"

// These tests use real sockets on the loopback interface. Where one waits for something that must happen it waits up
// to kPatience; where it waits for something that must not happen the server's script guarantees it.
namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::Connection;
using testing::LoopbackServer;

constexpr auto kPatience = 20s;

class CollectingSink final : public ByteSink {
 public:
  Result<void> on_bytes(std::string_view bytes) override {
    text_ += bytes;
    ++calls_;
    if (text_.find("refuse") != std::string::npos) return invalid_argument("refused by the sink");
    return {};
  }
  const std::string& text() const { return text_; }
  int calls() const { return calls_; }

 private:
  std::string text_;
  int calls_ = 0;
};

std::shared_ptr<Transport> connect_to(const std::string& url) {
  auto transport = make_cpprest_transport({url});
  REQUIRE(transport.ok());
  return *transport;
}

TEST_CASE("a stop request ends a waiting request and a waiting stream at once") {
  std::atomic<int> waiting = 0;
  LoopbackServer server([&](Connection& connection) {
    connection.read_request();
    connection.start_chunked();
    ++waiting;
    connection.wait_for_hang_up();
  });
  const auto transport = connect_to(server.url());
  for (const bool is_stream : {false, true}) {
    INFO(is_stream);
    waiting = 0;
    std::stop_source stop;
    CollectingSink sink;
    std::chrono::steady_clock::time_point asked;
    std::thread stopper([&] {
      while (waiting == 0) std::this_thread::yield();
      asked = std::chrono::steady_clock::now();
      stop.request_stop();
    });
    const auto response = is_stream ? transport->stream({"GET", "/"}, sink, kPatience, stop.get_token())
                                    : transport->send({"GET", "/"}, kPatience, stop.get_token());
    const auto returned = std::chrono::steady_clock::now();
    stopper.join();
    REQUIRE_FALSE(response.ok());
    CHECK(response.error().code() == ErrorCode::kCancelled);
    CHECK(returned - asked < 5s);  // 100 ms on an idle machine
  }
}

TEST_CASE("a stream's pieces reach the sink while the server is still sending") {
  std::atomic<bool> first_seen = false;
  LoopbackServer server([&](Connection& connection) {
    connection.read_request();
    connection.start_chunked();
    connection.write_chunk("{\"type\":");
    while (!first_seen) std::this_thread::yield();
    connection.write_chunk("\"ADDED\"}\n");
    connection.write("0\r\n\r\n");
  });
  struct Sink final : ByteSink {
    explicit Sink(std::atomic<bool>& flag) : seen(flag) {}
    Result<void> on_bytes(std::string_view bytes) override {
      text += bytes;
      seen = true;
      return {};
    }
    std::atomic<bool>& seen;
    std::string text;
  } sink(first_seen);
  const auto response = connect_to(server.url())->stream({"GET", "/"}, sink, kPatience, {});
  REQUIRE(response.ok());
  CHECK(response->status == 200);
  CHECK(response->body.empty());
  CHECK(sink.text == "{\"type\":\"ADDED\"}\n");
}

TEST_CASE("a stream that is refused keeps its sink empty and has the body") {
  LoopbackServer server([](Connection& connection) {
    connection.read_request();
    connection.answer(410, "too old");
  });
  CollectingSink sink;
  const auto response = connect_to(server.url())->stream({"GET", "/"}, sink, kPatience, {});
  REQUIRE(response.ok());
  CHECK(response->status == 410);
  CHECK(response->body == "too old");
  CHECK(sink.calls() == 0);
}

TEST_CASE("a silent stream is given up after the idle limit, however long it lived before") {
  LoopbackServer server([](Connection& connection) {
    connection.read_request();
    connection.start_chunked();
    for (int i = 0; i < 4; ++i) {
      std::this_thread::sleep_for(60ms);
      connection.write_chunk("x");
    }
    connection.wait_for_hang_up();
  });
  CollectingSink sink;
  const auto response = connect_to(server.url())->stream({"GET", "/"}, sink, 2s, {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().code() == ErrorCode::kDeadlineExceeded);
  CHECK(sink.text() == "xxxx");
}

TEST_CASE("a stream cut off in the middle is an error, not an end") {
  const bool half_close = GENERATE(true, false);
  LoopbackServer server([&](Connection& connection) {
    connection.read_request();
    connection.start_chunked();
    connection.write_chunk("complete\n");
    connection.write("100\r\npart of a chu");
    if (half_close) {
      connection.half_close();
      connection.wait_for_hang_up();
    }
  });
  CollectingSink sink;
  const auto response = connect_to(server.url())->stream({"GET", "/"}, sink, kPatience, {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().code() == ErrorCode::kUnavailable);
  CHECK(sink.text() == "complete\n");
}

TEST_CASE("the sink's error ends the stream and hangs up") {
  std::atomic<bool> hung_up = false;
  LoopbackServer server([&](Connection& connection) {
    connection.read_request();
    connection.start_chunked();
    connection.write_chunk("refuse");
    connection.wait_for_hang_up();
    hung_up = true;
  });
  CollectingSink sink;
  const auto response = connect_to(server.url())->stream({"GET", "/"}, sink, kPatience, {});
  REQUIRE_FALSE(response.ok());
  CHECK(response.error().message() == "refused by the sink");
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!hung_up && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);
  CHECK(hung_up);
}

TEST_CASE("a slow sink slows the server down instead of filling memory") {
  constexpr std::size_t kChunk = 256 << 10;
  constexpr int kChunks = 200;  // 50 MiB, far more than the sockets' buffers hold
  std::atomic<int> sent = 0;
  LoopbackServer server([&](Connection& connection) {
    connection.read_request();
    connection.start_chunked();
    const std::string chunk(kChunk, 'x');
    for (int i = 0; i < kChunks && connection.write_chunk(chunk); ++i) ++sent;
    connection.write("0\r\n\r\n");
  });
  struct Sink final : ByteSink {
    explicit Sink(std::atomic<int>& count) : sent(count) {}
    Result<void> on_bytes(std::string_view bytes) override {
      if (received == 0) {
        // Hold the first piece until the server cannot send any more.
        int before = -1;
        while (before != sent) {
          before = sent;
          std::this_thread::sleep_for(300ms);
        }
        sent_while_held = before;
      }
      received += bytes.size();
      return {};
    }
    std::atomic<int>& sent;
    std::size_t received = 0;
    int sent_while_held = 0;
  } sink(sent);
  const auto response = connect_to(server.url())->stream({"GET", "/"}, sink, kPatience, {});
  REQUIRE(response.ok());
  CHECK(sink.received == kChunk * kChunks);
  CHECK(sink.sent_while_held < kChunks);
}

}  // namespace
}  // namespace sluice::http
