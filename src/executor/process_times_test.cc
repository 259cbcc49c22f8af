#include "src/executor/process_times.h"

#include <unistd.h>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::executor {
namespace {

ProcessTimes at(double seconds, double busy, double queued) {
  using std::chrono::steady_clock;
  return {steady_clock::time_point(
              std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds))),
          busy, queued};
}

TEST_CASE("a process was blocked while it neither ran nor waited for a CPU") {
  struct Case {
    const char* story;
    ProcessTimes now;
    double blocked;
  };
  const Case cases[] = {{"it slept", at(11, 5, 2), 1},
                        {"it ran", at(11, 6, 2), 0},
                        {"it waited for a CPU", at(11, 5, 3), 0},
                        {"each for a part", at(11, 5.25, 2.25), 0.5},
                        {"two threads ran", at(11, 7, 2), 0}};
  for (const Case& each : cases) {
    INFO(each.story);
    CHECK(each.now.blocked_seconds_since(at(10, 5, 2)) == Approx(each.blocked).margin(1e-9));
  }
}

TEST_CASE("a process that sleeps has times; one that is not counted, runs or has gone has none") {
  struct Case {
    const char* story;
    const char *stat, *schedstat;
    std::optional<double> queued_seconds;
  };
  const Case cases[] = {{"it sleeps", "7 (python3) S 1 7", "1000000 2500000000 7", 2.5},
                        {"it waits for a disk", "7 (a) R (b) D 1 7", "1000000 2500000000 7", 2.5},
                        {"it runs, or waits for a CPU", "7 (python3) R 1 7", "1000000 2500000000 7", std::nullopt},
                        {"the kernel does not count", "7 (python3) S 1 7", "0 0 0", std::nullopt},
                        {"no schedstat", "7 (python3) S 1 7", "", std::nullopt},
                        {"no stat", "", "1000000 2500000000 7", std::nullopt}};
  for (const Case& each : cases) {
    INFO(each.story);
    const testing::TemporaryDirectory root;
    const std::string folder = "proc/" + std::to_string(::getpid());
    root.file(folder + "/stat", each.stat);
    root.file(folder + "/schedstat", each.schedstat);
    std::optional<ProcessTimes> times;
    // A look that takes too long is none.
    for (int i = 0; i < 1000 && !times; ++i) times = process_times(::getpid(), root.path);
    CHECK(times.has_value() == each.queued_seconds.has_value());
    if (times) CHECK(times->queued_seconds == *each.queued_seconds);
  }
}

TEST_CASE("a process's own memory is what it shares with no other") {
  const testing::TemporaryDirectory root;
  CHECK(!private_bytes(7, root.path));
  root.file("proc/7/smaps_rollup",
            "55d0-7ffc ---p 00000000 00:00 0    [rollup]\n"
            "Rss:              300000 kB\n"
            "Private_Clean:        16 kB\n"
            "Private_Dirty:      4080 kB\n"
            "Swap:                  0 kB\n");
  CHECK(private_bytes(7, root.path) == std::size_t{4} << 20);
}

}  // namespace
}  // namespace sluice::executor
