// A request that waits for memory runs as soon as some is freed, and may call the feeder: it must not hold its lock
// then.
#include <atomic>

#include "src/base/testing/catch.h"
#include "worker-image/testing/eventually.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

using testing::eventually;
using testing::LocalFeeder;
using testing::PictureFolder;
using testing::TestClient;

constexpr ExecutorId kWorker = 1;
constexpr std::size_t kArenaBytes = std::size_t{1} << 20;

// It has received a part of the batch that it was asked for.
class SlowWorker final : public RemoteExecutors {
 public:
  void load(ExecutorId, executor::PipelineHandle loaded) override { pipeline = loaded->number; }
  void execute(ExecutorId, RequestId id, executor::RequestHandle) override { request = id; }
  transport::ArenaSlot cancel(ExecutorId, RequestId) override { return std::move(part); }

  std::atomic<PipelineNumber> pipeline = 0;
  std::atomic<RequestId> request = 0;
  transport::ArenaSlot part;
};

TEST_CASE("the memory of a batch that is no longer wanted goes to one that calls the feeder") {
  const PictureFolder pictures;
  SlowWorker worker;
  LocalFeeder feeder({.threads = 1, .arena_bytes = kArenaBytes});
  feeder.core().set_remote(worker);
  feeder.core().executor_joined(kWorker, "10.0.0.1:7471", 1, 1, 0);
  worker.part = feeder.arena().try_allocate(kArenaBytes);
  auto client = std::make_unique<TestClient>(feeder.socket());
  client->open("native", pictures.specification());
  REQUIRE(eventually([&] { return worker.pipeline != 0; }));
  feeder.core().pipeline_ready(kWorker, worker.pipeline);
  // One for the feeder's own thread, which waits for memory, and one for the worker.
  client->request(0, {0, 1});
  client->request(1, {2, 3});
  REQUIRE(eventually([&] { return worker.request != 0; }));
  std::atomic<bool> is_served = false;
  feeder.arena().allocate_async(transport::kSlotAlignment, [&](const Result<transport::ArenaSlot>&) {
    feeder.core().tick(1);
    is_served = true;
  });
  SECTION("its stream is closed") { client->send({{"type", "close"}, {"stream", 1}}); }
  SECTION("its client goes") { client.reset(); }
  CHECK(eventually([&] { return is_served.load(); }));
}

}  // namespace
}  // namespace sluice::feeder
