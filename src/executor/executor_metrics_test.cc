#include "src/executor/executor_metrics.h"

#include "src/base/testing/catch.h"
#include "src/executor/testing/metrics_text.h"

namespace sluice::executor {
namespace {

using Lines = std::set<std::string>;
using testing::metrics_lines;

struct Fixture {
  prometheus::Registry registry;
  ExecutorMetrics metrics{registry, {"vision", "team-a"}, "remote"};
};

// `name` with the labels that every series has, then those of its own.
std::string series(const std::string& name, const std::string& own, const std::string& value) {
  return name + R"({job_namespace="team-a",training_job="vision",)" + own + "} " + value;
}

TEST_CASE("every series is there from the start, at zero, with the names, types and labels of the contract") {
  const Fixture f;
  Lines want = {
      "# TYPE sluice_worker_samples_total counter",    "# TYPE sluice_worker_busy_seconds_total counter",
      "# TYPE sluice_worker_bytes_total counter",      "# TYPE sluice_worker_errors_total counter",
      "# TYPE sluice_worker_op_seconds_total counter", "# TYPE sluice_worker_threads gauge",
      "# TYPE sluice_worker_queue_depth gauge",
  };
  const std::string here = R"(placement="remote")";
  for (const char* name : {"sluice_worker_samples_total", "sluice_worker_busy_seconds_total"}) {
    for (const char* kind : {"native", "python"})
      want.insert(series(name, std::string("executor=\"") + kind + "\"," + here, "0"));
  }
  for (const char* op : {"read", "decode", "resample", "finish"})
    want.insert(series("sluice_worker_op_seconds_total", std::string("op=\"") + op + "\"," + here, "0"));
  for (const char* name : {"sluice_worker_bytes_total", "sluice_worker_errors_total", "sluice_worker_threads",
                           "sluice_worker_queue_depth"})
    want.insert(series(name, here, "0"));
  CHECK(metrics_lines(f.registry) == want);
}

TEST_CASE("a batch counts for its executor, an error costs time and makes no samples") {
  Fixture f;
  f.metrics.count_batch(ExecutorKind::kNative, 64, 0.5, 4096);
  f.metrics.count_batch(ExecutorKind::kNative, 32, 0.25, 1024);
  f.metrics.count_batch(ExecutorKind::kPython, 8, 2, 100);
  f.metrics.count_error(ExecutorKind::kPython, 0.125);
  const Lines lines = metrics_lines(f.registry);
  for (const std::string& want : {
           series("sluice_worker_samples_total", R"(executor="native",placement="remote")", "96"),
           series("sluice_worker_samples_total", R"(executor="python",placement="remote")", "8"),
           series("sluice_worker_busy_seconds_total", R"(executor="native",placement="remote")", "0.75"),
           series("sluice_worker_busy_seconds_total", R"(executor="python",placement="remote")", "2.125"),
           series("sluice_worker_bytes_total", R"(placement="remote")", "5220"),
           series("sluice_worker_errors_total", R"(placement="remote")", "1"),
       }) {
    INFO(want);
    CHECK(lines.contains(want));
  }
}

TEST_CASE("the seconds of operations are counted once, however often they are handed in") {
  Fixture f;
  OpSeconds seconds{.read = 0.5, .decode = 1, .resample = 0.25, .finish = 0.125};
  f.metrics.count_ops(seconds);
  f.metrics.count_ops(seconds);  // reset by the first call
  const Lines lines = metrics_lines(f.registry);
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="read",placement="remote")", "0.5")));
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="decode",placement="remote")", "1")));
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="resample",placement="remote")", "0.25")));
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="finish",placement="remote")", "0.125")));
}

TEST_CASE("counters never fall: what a child claims to have given back is not believed") {
  Fixture f;
  f.metrics.count_batch(ExecutorKind::kPython, 1, 4, 10);
  f.metrics.count_batch(ExecutorKind::kPython, 1, -1000, 10);
  f.metrics.count_error(ExecutorKind::kPython, -1);
  OpSeconds backwards{.read = -1};
  f.metrics.count_ops(backwards);
  const Lines lines = metrics_lines(f.registry);
  CHECK(lines.contains(series("sluice_worker_busy_seconds_total", R"(executor="python",placement="remote")", "4")));
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="read",placement="remote")", "0")));
}

TEST_CASE("threads and queue are what was set last") {
  Fixture f;
  for (const std::size_t value : {4u, 9u, 2u}) {
    f.metrics.set_threads(value);
    f.metrics.set_queue_depth(10 * value);
  }
  const Lines lines = metrics_lines(f.registry);
  CHECK(lines.contains(series("sluice_worker_threads", R"(placement="remote")", "2")));
  CHECK(lines.contains(series("sluice_worker_queue_depth", R"(placement="remote")", "20")));
}

TEST_CASE("a name with quotes, backslashes and line ends cannot break the page") {
  prometheus::Registry registry;
  const ExecutorMetrics metrics(registry, {"a\"b\\c\nd", "ns"}, "local");
  const Lines lines = metrics_lines(registry);
  CHECK(lines.contains(R"(sluice_worker_threads{job_namespace="ns",training_job="a\"b\\c\nd",placement="local"} 0)"));
}

}  // namespace
}  // namespace sluice::executor
