// The end of a stream, and of the feeder. What a batch leaves open is closed with its stream, before the client is told
// so: its loop may write to the file then.
#include <filesystem>

#include "src/base/testing/catch.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

using nlohmann::json;
using testing::LocalFeeder;
using testing::TestClient;

// How many processes have the file open.
std::size_t readers_of(const std::filesystem::path& path) {
  std::size_t count = 0;
  std::error_code gone;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    for (const auto& entry : std::filesystem::directory_iterator(process.path() / "fd", gone))
      count += std::filesystem::read_symlink(entry.path(), gone) == path ? 1 : 0;
  }
  return count;
}

json close_of(std::uint64_t stream) { return {{"type", "close"}, {"stream", stream}, {"ends_executors", true}}; }

TEST_CASE("processes that keep files open end with the last stream of their pipeline") {
  const testing::TemporaryDirectory folder;
  const std::string file = folder.file("numbers", "1");
  LocalFeeder feeder({.threads = 2, .python_path = std::filesystem::absolute("src/executor/testing/python").string()});
  TestClient client(feeder.socket());
  client.open("python", json{{"behaviour", "opens"}, {"file", file}}.dump());
  client.send({{"type", "open"}, {"stream", 2}, {"pipeline", 1}, {"base_seed", 42}, {"epoch", 0}});
  for (const std::uint64_t stream : {1u, 2u}) {
    client.request(0, {1, 2}, stream);
    const auto message = client.receive();
    CHECK(message.json.value("holds_files", false));
    client.take_batch(message);
  }
  CHECK(readers_of(file) > 0);
  client.send(close_of(1));
  CHECK(client.receive().json == json{{"type", "closed"}, {"stream", 1}});
  CHECK(readers_of(file) > 0);
  client.send(close_of(2));
  CHECK(client.receive().json == json{{"type", "closed"}, {"stream", 2}});
  CHECK(readers_of(file) == 0);
}

TEST_CASE("a feeder ends while batches are made and others wait for their turn") {
  for (int round = 0; round < 20; ++round) {
    LocalFeeder feeder(
        {.threads = 2, .python_path = std::filesystem::absolute("src/executor/testing/python").string()});
    TestClient client(feeder.socket());
    client.open("python", R"({"behaviour": "echo"})");
    for (std::uint64_t seq = 0; seq < 40; ++seq) client.request(seq, {1, 2});
    client.receive();  // so the next ones are under way
  }
}

TEST_CASE("a batch that leaves nothing open says so, and a stream that just closes is not answered") {
  LocalFeeder feeder({.threads = 1, .python_path = std::filesystem::absolute("src/executor/testing/python").string()});
  TestClient client(feeder.socket());
  client.open("python", R"({"behaviour": "echo"})");
  client.request(0, {1, 2});
  const auto message = client.receive();
  CHECK(!message.json.contains("holds_files"));
  client.take_batch(message);
  client.send({{"type", "close"}, {"stream", 1}});
  client.send(close_of(1));
  CHECK(client.receive().json["message"] == "close.stream: 1 is not open");
}

}  // namespace
}  // namespace sluice::feeder
