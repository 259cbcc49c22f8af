// Batches of Python pipelines that wait, for a network or a clock: more of them are in the making than there are
// threads.
#include <filesystem>

#include "src/base/testing/catch.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

using testing::LocalFeeder;
using testing::TestClient;

TEST_CASE("batches that wait are in the making together on one thread, before the first of them has come") {
  const testing::TemporaryDirectory folder;
  LocalFeeder feeder({.threads = 1, .python_path = std::filesystem::absolute("src/executor/testing/python").string()});
  TestClient client(feeder.socket());
  // None of them ends before all of them run: as many as the loader has workers.
  const nlohmann::json meet = {
      {"behaviour", "meet"}, {"folder", folder.path.string()}, {"children", TestClient::kNumWorkers}};
  client.open("python", meet.dump());
  CHECK(client.run(6, 2, 10).size() == 6);
}

}  // namespace
}  // namespace sluice::feeder
