#include "worker-image/feeder/arena_fit.h"

#include <mutex>
#include <vector>

#include "src/base/logging.h"
#include "src/base/testing/catch.h"
#include "worker-image/testing/local_feeder.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// A batch of 256 images of 3 x 224 x 224 float32, with 8 workers and a prefetch_factor of 2.
WindowInputs images(std::size_t arena_bytes, std::size_t clients = 1) {
  return {
      .credits = 4, .clients = clients, .prefetch_batches = 16, .arena_bytes = arena_bytes, .batch_bytes = 147 * kMiB};
}

TEST_CASE("an arena that the memory limit cannot hold is told, with both settings") {
  CHECK(arena_exceeds_memory(512 * kMiB, std::nullopt).empty());
  CHECK(arena_exceeds_memory(512 * kMiB, 576 * kMiB).empty());
  CHECK(arena_exceeds_memory(512 * kMiB, 256 * kMiB) ==
        "an arena of 512 MiB does not fit in the memory limit of 256 MiB: the feeder is killed when batches fill it. "
        "Raise spec.feeder.resources.limits.memory or lower spec.feeder.arena (SLUICE_ARENA_BYTES "
        "outside of a TrainingJob)");
}

TEST_CASE("batches that do not fit are told with what they take and where it is set") {
  CHECK(
      ArenaFit().told_of(images(512 * kMiB)) ==
      "the arena of 512 MiB is small: 16 batches of 147 MiB ahead of the loop take 2689 MiB, so that 2 are made ahead, "
      "the minimum (the arena is spec.feeder.arena in a TrainingJob, else SLUICE_ARENA_BYTES for each rank)");
  CHECK(ArenaFit().told_of(images(2048 * kMiB)).find("so that 12 are made ahead (") != std::string::npos);
  CHECK(ArenaFit().told_of(images(2048 * kMiB, 4)).find("ahead of each of 4 loops take") != std::string::npos);
  CHECK(ArenaFit().told_of(images(2689 * kMiB)).empty());
  WindowInputs unknown = images(512 * kMiB);
  unknown.batch_bytes = 0;
  CHECK(ArenaFit().told_of(unknown).empty());
}

TEST_CASE("it is told once, and again only when twice as much is wanted") {
  ArenaFit fit;
  CHECK(!fit.told_of(images(512 * kMiB)).empty());
  CHECK(fit.told_of(images(512 * kMiB)).empty());
  WindowInputs larger = images(512 * kMiB);
  larger.batch_bytes = 200 * kMiB;
  CHECK(fit.told_of(larger).empty());
  larger.batch_bytes = 300 * kMiB;
  CHECK(!fit.told_of(larger).empty());
}

TEST_CASE("a loop that waits at the smallest window is told once") {
  ArenaFit fit;
  fit.told_of(images(512 * kMiB));
  CHECK(fit.told_of_wait(0.02, 0.98).empty());
  CHECK(fit.told_of_wait(0.5, 0.5) ==
        "the loop waits for batches, and its window is at the minimum of 2 because they fill the arena: make the arena "
        "2689 MiB large, or lower batch_size (the arena is spec.feeder.arena in a TrainingJob, else "
        "SLUICE_ARENA_BYTES for each rank)");
  CHECK(fit.told_of_wait(0.5, 0.5).empty());

  ArenaFit deep;
  deep.told_of(images(2048 * kMiB));
  CHECK(deep.told_of_wait(0.5, 0.5).empty());

  ArenaFit few_executors;  // and so a window of two
  few_executors.told_of({.credits = 0, .prefetch_batches = 2, .arena_bytes = 512 * kMiB, .batch_bytes = kMiB});
  CHECK(few_executors.told_of_wait(0.5, 0.5).empty());
}

TEST_CASE("the log says that batches do not fit in the arena, and later that the loop waits for them, each once") {
  const testing::PictureFolder pictures;
  std::mutex mutex;
  std::vector<std::string> told;
  set_log_sink([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    if (line.find("spec.feeder.arena") != std::string_view::npos) told.emplace_back(line);
  });
  {
    testing::LocalFeeder feeder({.arena_bytes = 2 * 14 * 4096});  // two batches of four pictures
    testing::TestClient client(feeder.socket());
    client.open("native", pictures.specification());
    client.run(6, 4, 24);
    for (const int reported : {2, 4, 6}) {
      client.send({{"type", "progress"},
                   {"stream", 1},
                   {"batches", reported},
                   {"samples", 4 * reported},
                   {"compute_seconds", 0.1 * reported},
                   {"wait_seconds", 0.5 * reported},
                   {"queue_depth", 0},
                   {"queue_capacity", 2},
                   {"epoch", 0}});
    }
    CHECK(feeder.wait_metric("sluice_trainer_batches_total", 6));
  }
  set_log_sink(nullptr);
  REQUIRE(told.size() == 2);
  CHECK_THAT(told.front(), Catch::Contains("so that 2 are made ahead, the minimum"));
  CHECK_THAT(told.back(), Catch::Contains("the loop waits for batches, and its window is at the minimum of 2"));
}

}  // namespace
}  // namespace sluice::feeder
