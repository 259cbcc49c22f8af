// A pipeline's load runs the user's code, which may take long or hang. Only its own batches wait for it.
#include <filesystem>
#include <fstream>

#include "src/base/testing/catch.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

using testing::LocalFeeder;
using testing::TestClient;

constexpr std::size_t kLoadBatches = 3;

std::string loads_late(const std::string& behaviour, const std::filesystem::path& release) {
  return R"({"behaviour": ")" + behaviour + R"(", "release": ")" + release.string() + R"("})";
}

TEST_CASE("a pipeline that takes long to load holds up no other one") {
  const testing::TemporaryDirectory folder;
  const auto release = folder.path / "release";
  const std::string behaviour = GENERATE("echo", "cannot load");
  for (const std::size_t threads : {1u, 2u}) {
    INFO(behaviour << ", " << threads << " threads");
    LocalFeeder feeder(
        {.threads = threads, .python_path = std::filesystem::absolute("src/executor/testing/python").string()});
    TestClient first(feeder.socket(), 0), second(feeder.socket(), 1), other(feeder.socket(), 2);
    for (TestClient* client : {&first, &second}) {
      client->open("python", loads_late(behaviour, release));
      for (std::uint64_t seq = 0; seq < kLoadBatches; ++seq) client->request(seq, {1, 2});
    }
    other.open("python", R"({"behaviour": "echo"})");
    CHECK(other.run(20, 2, 10).size() == 20);
    std::ofstream(release) << "now";
    for (TestClient* client : {&first, &second}) {
      for (std::size_t i = 0; i < kLoadBatches; ++i) {
        const auto message = client->receive();
        CHECK(message.json["type"] == (behaviour == "echo" ? "batch" : "error"));
        if (behaviour == "echo") client->take_batch(message);
      }
    }
    std::filesystem::remove(release);
  }
}

}  // namespace
}  // namespace sluice::feeder
