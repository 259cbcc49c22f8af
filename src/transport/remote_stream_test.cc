// Both ends of a stream between feeder and worker, over gRPC on the loopback interface: order, backpressure, ownership
// of memory, and the end. (Who may connect at all: worker-image/feeder/remote_test.cc.)
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "src/base/testing/catch.h"
#include "src/transport/remote_client.h"
#include "src/transport/remote_server.h"

namespace sluice::transport {
namespace {

// A value that threads change and the test waits for.
class Shared {
 public:
  template <typename Change>
  void change(Change change) {
    std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  // False after a minute.
  template <typename Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), condition);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

struct Received {
  std::uint64_t id = 0;
  std::string payload;
};

class ServerEnd final : public RemoteServerHandler {
 public:
  void opened(std::shared_ptr<RemoteStream> stream) override {
    shared.change([&] { streams.push_back(std::move(stream)); });
  }
  void received(const std::shared_ptr<RemoteStream>&, v1::Header header, Payload payload) override {
    shared.change([&] { messages.push_back({header.request().id(), payload.text()}); });
  }
  void closed(const std::shared_ptr<RemoteStream>&) override {
    shared.change([&] { ++closed_count; });
  }

  std::shared_ptr<RemoteStream> first_stream() {
    REQUIRE(shared.wait([&] { return !streams.empty(); }));
    return streams.front();
  }

  Shared shared;
  std::vector<std::shared_ptr<RemoteStream>> streams;
  std::vector<Received> messages;
  int closed_count = 0;
};

class ClientEnd final : public RemoteClientHandler {
 public:
  explicit ClientEnd(bool keep_permits = false) : keep_permits_(keep_permits) {}

  void received(v1::Header header, Payload payload, ReadPermit permit) override {
    shared.change([&] {
      if (!permits.empty()) read_ahead = true;  // a read although a permit was out
      messages.push_back({header.chunk().id(), payload.text()});
      if (keep_permits_) permits.push_back(std::move(permit));
    });
  }
  void closed(const std::string& reason) override {
    shared.change([&] { closed_reasons.push_back(reason); });
  }

  bool wait_messages(std::size_t count) {
    return shared.wait([&] { return messages.size() >= count; });
  }
  bool wait_closed() {
    return shared.wait([&] { return !closed_reasons.empty(); });
  }
  void give_permits_back() {
    std::vector<ReadPermit> back;
    shared.change([&] { back.swap(permits); });
  }

  Shared shared;
  std::vector<Received> messages;
  std::vector<ReadPermit> permits;
  std::vector<std::string> closed_reasons;
  bool read_ahead = false;

 private:
  const bool keep_permits_;
};

struct Connected {
  explicit Connected(bool keep_permits = false) : client_end(keep_permits) {
    auto started = RemoteServer::start("127.0.0.1:0", {}, server_end);
    REQUIRE(started.ok());
    server = std::move(started).value();
    client = RemoteClient::create("127.0.0.1:" + std::to_string(server->port()), {}, client_end);
    client->start();
  }

  ServerEnd server_end;
  ClientEnd client_end;
  std::unique_ptr<RemoteServer> server;
  std::unique_ptr<RemoteClient> client;
};

v1::Header request(std::uint64_t id) {
  v1::Header header;
  header.mutable_request()->set_id(id);
  return header;
}

v1::Header chunk(std::uint64_t id) {
  v1::Header header;
  header.mutable_chunk()->set_id(id);
  return header;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::shared_ptr<const std::string> payload_of(std::size_t bytes, char fill) {
  return std::make_shared<const std::string>(bytes, fill);
}

TEST_CASE("messages arrive in order and whole, whatever their sizes, both ways at once") {
  Connected c;
  const auto stream = c.server_end.first_stream();
  const std::size_t sizes[] = {0, 1, 63, 64, 65, 4096, 100000, 3000000};
  for (std::uint64_t id = 0; id < 40; ++id) {
    const auto payload = payload_of(sizes[id % 8], static_cast<char>('a' + id % 26));
    c.client->send(request(id), bytes_of(*payload), payload);
    stream->send(chunk(id), bytes_of(*payload), payload);
  }
  REQUIRE(c.client_end.wait_messages(40));
  REQUIRE(c.server_end.shared.wait([&] { return c.server_end.messages.size() >= 40; }));
  for (std::uint64_t id = 0; id < 40; ++id) {
    const std::string want(sizes[id % 8], static_cast<char>('a' + id % 26));
    CHECK(c.client_end.messages[id].id == id);
    CHECK((c.client_end.messages[id].payload == want));
    CHECK(c.server_end.messages[id].id == id);
    CHECK((c.server_end.messages[id].payload == want));
  }
}

TEST_CASE("what is sent before the connection stands arrives once it does") {
  ServerEnd server_end;
  ClientEnd client_end;
  auto server = RemoteServer::start("127.0.0.1:0", {}, server_end);
  REQUIRE(server.ok());
  auto client = RemoteClient::create("127.0.0.1:" + std::to_string((*server)->port()), {}, client_end);
  client->start();
  for (std::uint64_t id = 0; id < 10; ++id) client->send(request(id));
  CHECK(server_end.shared.wait([&] { return server_end.messages.size() == 10; }));
}

TEST_CASE("nothing is read while the permit of a message is out") {
  Connected c(/*keep_permits=*/true);
  const auto stream = c.server_end.first_stream();
  for (std::uint64_t id = 0; id < 50; ++id) stream->send(chunk(id));
  for (std::size_t count = 1; count <= 50; ++count) {
    REQUIRE(c.client_end.wait_messages(count));
    c.client_end.give_permits_back();
  }
  CHECK(!c.client_end.read_ahead);
}

TEST_CASE("a client that does not read leaves the payloads with the sender, and only so many on the way") {
  Connected c(/*keep_permits=*/true);
  const auto stream = c.server_end.first_stream();
  const std::size_t kMessages = 64, kBytes = std::size_t{1} << 20;
  std::vector<std::weak_ptr<const std::string>> owners;
  for (std::uint64_t id = 0; id < kMessages; ++id) {
    const auto payload = payload_of(kBytes, 'x');
    owners.push_back(payload);
    stream->send(chunk(id), bytes_of(*payload), payload);
  }
  REQUIRE(c.client_end.wait_messages(1));
  const auto kept = static_cast<std::size_t>(
      std::count_if(owners.begin(), owners.end(), [](const auto& owner) { return !owner.expired(); }));
  CHECK(kept > kMessages / 4);  // HTTP/2's windows and the kernel's buffers hold the rest
  for (std::size_t count = 1; count <= kMessages; ++count) {
    REQUIRE(c.client_end.wait_messages(count));
    c.client_end.give_permits_back();
  }
  // gRPC's threads let go of the last ones on their own time.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto all_released = [&] {
    return std::all_of(owners.begin(), owners.end(), [](const auto& owner) { return owner.expired(); });
  };
  while (!all_released() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  CHECK(all_released());
}

TEST_CASE("finishing lets what is queued out, then ends the stream without an error") {
  Connected c;
  const auto stream = c.server_end.first_stream();
  for (std::uint64_t id = 0; id < 20; ++id) stream->send(chunk(id));
  stream->finish();
  stream->send(chunk(99));
  REQUIRE(c.client_end.wait_closed());
  CHECK(c.client_end.messages.size() == 20);
  CHECK(c.client_end.closed_reasons == std::vector<std::string>{"the worker ended the stream"});
  CHECK(c.server_end.shared.wait([&] { return c.server_end.closed_count == 1; }));
}

TEST_CASE("each end is told once when the other goes") {
  Connected c;
  const auto stream = c.server_end.first_stream();
  SECTION("the server") {
    c.server.reset();
    CHECK(c.server_end.closed_count == 1);
    REQUIRE(c.client_end.wait_closed());
    c.client->send(request(1));  // into the void
  }
  SECTION("the client") {
    c.client.reset();
    CHECK(c.client_end.closed_reasons.size() == 1);
    REQUIRE(c.server_end.shared.wait([&] { return c.server_end.closed_count == 1; }));
    stream->send(chunk(1));
    stream->finish();
  }
  c.client.reset();
  c.server.reset();
  CHECK(c.client_end.closed_reasons.size() == 1);
  CHECK(c.server_end.closed_count == 1);
}

TEST_CASE("a client may go while it holds a permit, and give the permit back later") {
  Connected c(/*keep_permits=*/true);
  c.server_end.first_stream()->send(chunk(1));
  REQUIRE(c.client_end.wait_messages(1));
  c.client.reset();
  CHECK(c.client_end.closed_reasons.size() == 1);
  c.client_end.give_permits_back();
}

std::size_t open_sockets() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().starts_with("socket:");
  }
  return count;
}

TEST_CASE("a client takes its connection along, though a permit is still out") {
  // Were the permit, or the last callback, the connection's end, gRPC would wait there for the thread that it is on.
  ServerEnd server_end;
  auto server = RemoteServer::start("127.0.0.1:0", {}, server_end);
  REQUIRE(server.ok());
  const std::size_t before = open_sockets();
  ClientEnd client_end(/*keep_permits=*/true);
  auto client = RemoteClient::create("127.0.0.1:" + std::to_string((*server)->port()), {}, client_end);
  client->start();
  server_end.first_stream()->send(chunk(1));
  REQUIRE(client_end.wait_messages(1));
  CHECK(open_sockets() == before + 2);  // both ends of the connection
  client.reset();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (open_sockets() > before && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  CHECK(open_sockets() == before);
  client_end.give_permits_back();
}

TEST_CASE("payloads that were never sent are let go when the stream ends") {
  std::weak_ptr<const std::string> owner;
  {
    Connected c(/*keep_permits=*/true);
    const auto stream = c.server_end.first_stream();
    for (std::uint64_t id = 0; id < 64; ++id) {
      const auto payload = payload_of(std::size_t{1} << 20, 'x');
      owner = payload;
      stream->send(chunk(id), bytes_of(*payload), payload);
    }
    REQUIRE(c.client_end.wait_messages(1));
    CHECK(!owner.expired());
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!owner.expired() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  CHECK(owner.expired());
}

TEST_CASE("without a listener the client is told why, and never received anything") {
  ClientEnd client_end;
  std::string address;
  {
    ServerEnd server_end;
    auto server = RemoteServer::start("127.0.0.1:0", {}, server_end);
    REQUIRE(server.ok());
    address = "127.0.0.1:" + std::to_string((*server)->port());
  }
  auto client = RemoteClient::create(address, {}, client_end);
  client->start();
  REQUIRE(client_end.wait_closed());
  CHECK(!client_end.closed_reasons.front().empty());
  CHECK(client_end.messages.empty());
}

TEST_CASE("a client that was never started goes without an event") {
  ClientEnd client_end;
  { auto client = RemoteClient::create("127.0.0.1:1", {}, client_end); }
  CHECK(client_end.closed_reasons.empty());
}

TEST_CASE("an address that is taken, or TLS files that are none, do not start a server") {
  ServerEnd server_end;
  auto server = RemoteServer::start("127.0.0.1:0", {}, server_end);
  REQUIRE(server.ok());
  const auto taken = RemoteServer::start("127.0.0.1:" + std::to_string((*server)->port()), {}, server_end);
  REQUIRE(!taken.ok());
  CHECK(taken.error().code() == ErrorCode::kUnavailable);
  const auto damaged = RemoteServer::start("127.0.0.1:0", TlsMaterial{"no PEM", "no PEM", "no PEM"}, server_end);
  REQUIRE(!damaged.ok());
  CHECK_THAT(std::string(damaged.error().message()), Catch::Contains("TLS"));
}

TEST_CASE("streams of several clients are told apart") {
  Connected c;
  ClientEnd second_end;
  auto second = RemoteClient::create("127.0.0.1:" + std::to_string(c.server->port()), {}, second_end);
  second->start();
  REQUIRE(c.server_end.shared.wait([&] { return c.server_end.streams.size() == 2; }));
  c.server_end.streams[0]->send(chunk(10));
  c.server_end.streams[1]->send(chunk(20));
  REQUIRE(c.client_end.wait_messages(1));
  REQUIRE(second_end.wait_messages(1));
  CHECK(c.client_end.messages[0].id + second_end.messages[0].id == 30);
  second.reset();
  REQUIRE(c.server_end.shared.wait([&] { return c.server_end.closed_count == 1; }));
  c.client->send(request(1));
  CHECK(c.server_end.shared.wait([&] { return c.server_end.messages.size() == 1; }));
}

}  // namespace
}  // namespace sluice::transport
