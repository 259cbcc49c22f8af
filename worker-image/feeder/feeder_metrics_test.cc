#include "worker-image/feeder/feeder_metrics.h"

#include "src/base/testing/catch.h"
#include "src/executor/testing/metrics_text.h"

namespace sluice::feeder {
namespace {

using Lines = std::set<std::string>;
using testing::metrics_lines;
using transport::ProgressMessage;

struct FeederFigures {
  prometheus::Registry registry;
  FeederMetrics metrics{registry, {"vision", "team-a"}};

  bool shows(const std::string& name, const std::string& own, const std::string& value) const {
    const std::string labels =
        R"({job_namespace="team-a",training_job="vision")" + (own.empty() ? "" : "," + own) + "} ";
    return metrics_lines(registry).contains(name + labels + value);
  }
};

ProgressMessage progress(std::uint64_t batches, double compute_seconds, double wait_seconds = 0) {
  return {.batches = batches,
          .samples = 8 * batches,
          .skipped_samples = 2 * batches,
          .compute_seconds = compute_seconds,
          .wait_seconds = wait_seconds,
          .queue_depth = 3,
          .queue_capacity = 7,
          .epoch = 2};
}

TEST_CASE("before a client connects, the feeder's own series are there, at zero") {
  const FeederFigures f;
  const std::string labels = R"({job_namespace="team-a",training_job="vision")";
  Lines want = {
      "# TYPE sluice_feeder_batches_total counter",
      "# TYPE sluice_feeder_reissued_batches_total counter",
      "# TYPE sluice_feeder_hedged_batches_total counter",
      "# TYPE sluice_feeder_refused_workers_total counter",
      "# TYPE sluice_feeder_duplicate_batches_total counter",
      "# TYPE sluice_feeder_cpu_seconds_total counter",
      "# TYPE sluice_feeder_remote_workers gauge",
      "# TYPE sluice_feeder_outstanding_batches gauge",
      "# TYPE sluice_feeder_arena_free_bytes gauge",
      "# TYPE sluice_feeder_first_remote_batch_timestamp_seconds gauge",
      "sluice_feeder_batches_total" + labels + R"(,placement="local"} 0)",
      "sluice_feeder_batches_total" + labels + R"(,placement="remote"} 0)",
  };
  for (const char* name : {"reissued_batches_total", "hedged_batches_total", "duplicate_batches_total",
                           "cpu_seconds_total", "refused_workers_total", "remote_workers", "outstanding_batches",
                           "arena_free_bytes", "first_remote_batch_timestamp_seconds"})
    want.insert("sluice_feeder_" + std::string(name) + labels + "} 0");
  CHECK(metrics_lines(f.registry) == want);
}

TEST_CASE("a rank's first report makes its series, with the names, types and labels of the contract") {
  FeederFigures f;
  const Lines before = metrics_lines(f.registry);
  f.metrics.count_progress(3, {}, progress(10, 1.5, 0.5));
  const Lines after = metrics_lines(f.registry);
  Lines added;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::inserter(added, added.end()));
  const std::string labels = R"({job_namespace="team-a",training_job="vision",)";
  CHECK(added == Lines{
                     "# TYPE sluice_trainer_samples_total counter",
                     "# TYPE sluice_trainer_skipped_samples_total counter",
                     "# TYPE sluice_trainer_batches_total counter",
                     "# TYPE sluice_trainer_step_seconds_total counter",
                     "# TYPE sluice_trainer_queue_depth gauge",
                     "# TYPE sluice_trainer_queue_capacity gauge",
                     "# TYPE sluice_trainer_epoch gauge",
                     "sluice_trainer_samples_total" + labels + R"(rank="3"} 80)",
                     "sluice_trainer_skipped_samples_total" + labels + R"(rank="3"} 20)",
                     "sluice_trainer_batches_total" + labels + R"(rank="3"} 10)",
                     "sluice_trainer_step_seconds_total" + labels + R"(phase="compute",rank="3"} 1.5)",
                     "sluice_trainer_step_seconds_total" + labels + R"(phase="data_wait",rank="3"} 0.5)",
                     "sluice_trainer_queue_depth" + labels + R"(rank="3"} 3)",
                     "sluice_trainer_queue_capacity" + labels + R"(rank="3"} 7)",
                     "sluice_trainer_epoch" + labels + R"(rank="3"} 2)",
                 });
}

TEST_CASE("counters of a rank go on over streams, repeated and wrong reports, and never fall") {
  struct Step {
    const char* name;
    ProgressMessage before, now;
    const char* want_batches;
    const char* want_compute;
  };
  FeederFigures f;
  const Step steps[] = {
      {"the first report", {}, progress(10, 1.5), "10", "1.5"},
      {"what a stream adds", progress(10, 1.5), progress(15, 2), "15", "2"},
      {"the same report again", progress(15, 2), progress(15, 2), "15", "2"},
      {"a new stream begins at zero", {}, progress(5, 0.5), "20", "2.5"},
      {"a total that went backwards", progress(5, 0.5), progress(1, 0.25), "20", "2.5"},
      {"negative seconds", {}, progress(0, -100), "20", "2.5"},
  };
  for (const Step& step : steps) {
    INFO(step.name);
    f.metrics.count_progress(0, step.before, step.now);
    CHECK(f.shows("sluice_trainer_batches_total", R"(rank="0")", step.want_batches));
    CHECK(f.shows("sluice_trainer_step_seconds_total", R"(phase="compute",rank="0")", step.want_compute));
  }
}

TEST_CASE("what remains of a training is what its rank said last, and no series where it says nothing") {
  FeederFigures f;
  const auto report = [&](std::int64_t rank, std::optional<std::uint64_t> remaining) {
    ProgressMessage now = progress(10, 1);
    now.remaining_samples = remaining;
    f.metrics.count_progress(rank, {}, now);
  };
  const auto lines_of_remaining = [&] {
    Lines found;
    for (const std::string& line : metrics_lines(f.registry))
      if (line.starts_with("sluice_trainer_remaining_samples")) found.insert(line.substr(line.find("rank=")));
    return found;
  };
  report(0, std::nullopt);
  CHECK(lines_of_remaining().empty());
  report(0, 800), report(1, 816);
  CHECK(lines_of_remaining() == Lines{R"(rank="0"} 800)", R"(rank="1"} 816)"});
  report(0, 0), report(1, std::nullopt);
  CHECK(lines_of_remaining() == Lines{R"(rank="0"} 0)"});
  report(1, 90);
  CHECK(lines_of_remaining() == Lines{R"(rank="0"} 0)", R"(rank="1"} 90)"});
}

TEST_CASE("ranks are counted apart, and those that are made up do not fill the memory") {
  FeederFigures f;
  for (std::int64_t rank = 0; rank < 3000; ++rank) f.metrics.count_progress(rank, {}, progress(1, 0));
  CHECK(f.shows("sluice_trainer_batches_total", R"(rank="0")", "1"));
  CHECK(f.shows("sluice_trainer_batches_total", R"(rank="1023")", "1"));
  CHECK(!f.shows("sluice_trainer_batches_total", R"(rank="1024")", "1"));
  CHECK(f.shows("sluice_trainer_batches_total", R"(rank="-1")", "1976"));
  f.metrics.count_progress(7, progress(1, 0), progress(2, 0));
  CHECK(f.shows("sluice_trainer_batches_total", R"(rank="7")", "2"));
}

TEST_CASE("the first remote batch's time is kept, whatever comes after it") {
  FeederFigures f;
  f.metrics.count_batch("local", 1000);
  CHECK(f.shows("sluice_feeder_first_remote_batch_timestamp_seconds", "", "0"));
  f.metrics.count_batch("remote", 2000);
  f.metrics.count_batch("remote", 3000);
  CHECK(f.shows("sluice_feeder_first_remote_batch_timestamp_seconds", "", "2000"));
  CHECK(f.shows("sluice_feeder_batches_total", R"(placement="local")", "1"));
  CHECK(f.shows("sluice_feeder_batches_total", R"(placement="remote")", "2"));
}

TEST_CASE("CPU seconds follow the process's total and never fall") {
  FeederFigures f;
  for (const auto& [total, want] : {std::pair{2.5, "2.5"}, {4.0, "4"}, {4.0, "4"}, {1.0, "4"}, {4.5, "4.5"}}) {
    f.metrics.set_cpu_seconds(total);
    CHECK(f.shows("sluice_feeder_cpu_seconds_total", "", want));
  }
}

TEST_CASE("gauges are what was set last") {
  FeederFigures f;
  for (const std::size_t value : {3u, 0u, 9u}) {
    f.metrics.set_remote_workers(value);
    f.metrics.set_outstanding(value + 1);
    f.metrics.set_arena_free(value + 2);
  }
  f.metrics.count_reissued(0);
  f.metrics.count_reissued(4);
  f.metrics.count_duplicate();
  CHECK(f.shows("sluice_feeder_remote_workers", "", "9"));
  CHECK(f.shows("sluice_feeder_outstanding_batches", "", "10"));
  CHECK(f.shows("sluice_feeder_arena_free_bytes", "", "11"));
  CHECK(f.shows("sluice_feeder_reissued_batches_total", "", "4"));
  CHECK(f.shows("sluice_feeder_duplicate_batches_total", "", "1"));
}

}  // namespace
}  // namespace sluice::feeder
