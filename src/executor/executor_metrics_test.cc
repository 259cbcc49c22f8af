#include "src/executor/executor_metrics.h"

#include "src/base/testing/catch.h"
#include "src/executor/testing/metrics_text.h"

namespace sluice::executor {
namespace {

using Lines = std::set<std::string>;
using testing::metrics_lines;

struct RegisteredMetrics {
  prometheus::Registry registry;
  ExecutorMetrics metrics{registry, {"vision", "team-a"}, "remote"};
};

// `name` with the labels that every series has, then those of its own.
std::string series(const std::string& name, const std::string& own, const std::string& value) {
  return name + R"({job_namespace="team-a",training_job="vision",)" + own + "} " + value;
}

TEST_CASE("every series is there from the start, at zero, with the names, types and labels of the contract") {
  const RegisteredMetrics f;
  Lines want = {
      "# TYPE sluice_worker_samples_total counter",    "# TYPE sluice_worker_busy_seconds_total counter",
      "# TYPE sluice_worker_bytes_total counter",      "# TYPE sluice_worker_errors_total counter",
      "# TYPE sluice_worker_op_seconds_total counter", "# TYPE sluice_worker_threads gauge",
      "# TYPE sluice_worker_queue_depth gauge",        "# TYPE sluice_worker_op_bytes_total counter",
  };
  const std::string here = R"(placement="remote")";
  for (const char* name : {"sluice_worker_samples_total", "sluice_worker_busy_seconds_total"}) {
    for (const char* kind : {"native", "python"})
      want.insert(series(name, std::string("executor=\"") + kind + "\"," + here, "0"));
  }
  want.insert(series("sluice_worker_busy_seconds_total", R"(executor="transport",placement="remote")", "0"));
  for (const char* op : {"read", "decode", "resample", "finish"}) {
    for (const char* name : {"sluice_worker_op_seconds_total", "sluice_worker_op_bytes_total"})
      want.insert(series(name, std::string("op=\"") + op + "\"," + here, "0"));
  }
  for (const char* name : {"sluice_worker_bytes_total", "sluice_worker_errors_total", "sluice_worker_threads",
                           "sluice_worker_queue_depth"})
    want.insert(series(name, here, "0"));
  CHECK(metrics_lines(f.registry) == want);
}

TEST_CASE("what a worker's process spends on transport is busy time, too, and never falls") {
  RegisteredMetrics f;
  const auto shown = [&](const char* value) {
    return metrics_lines(f.registry)
        .contains(series("sluice_worker_busy_seconds_total", R"(executor="transport",placement="remote")", value));
  };
  f.metrics.set_transport_seconds(1.5);
  CHECK(shown("1.5"));
  f.metrics.set_transport_seconds(1.25);  // clocks of threads and process are read one after the other
  CHECK(shown("1.5"));
  f.metrics.set_transport_seconds(2);
  CHECK(shown("2"));
}

TEST_CASE("a feeder's transport serves remote batches and is not counted as local execution") {
  prometheus::Registry registry;
  ExecutorMetrics metrics(registry, {"vision", "team-a"}, "local");
  metrics.set_transport_seconds(3);
  for (const std::string& line : metrics_lines(registry)) CHECK(line.find("transport") == std::string::npos);
}

TEST_CASE("a batch counts for its executor, an error costs time and makes no samples") {
  RegisteredMetrics f;
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

TEST_CASE("what operations cost is counted once, however often it is handed in") {
  RegisteredMetrics f;
  pipeline::OpCosts costs{.read = {0.5, 100}, .decode = {1, 700}, .resample = {0.25, 30}, .finish = {0.125, 120}};
  costs.ops["color_jitter"] = {2, 30};
  f.metrics.count_ops(costs);
  f.metrics.count_ops(costs);  // reset by the first call
  const Lines lines = metrics_lines(f.registry);
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="read",placement="remote")", "0.5")));
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="decode",placement="remote")", "1")));
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="resample",placement="remote")", "0.25")));
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="finish",placement="remote")", "0.125")));
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="color_jitter",placement="remote")", "2")));
  CHECK(lines.contains(series("sluice_worker_op_bytes_total", R"(op="read",placement="remote")", "100")));
  CHECK(lines.contains(series("sluice_worker_op_bytes_total", R"(op="decode",placement="remote")", "700")));
  CHECK(lines.contains(series("sluice_worker_op_bytes_total", R"(op="color_jitter",placement="remote")", "30")));
}

TEST_CASE("an executor that has not told how long it was blocked has no such series") {
  RegisteredMetrics f;
  const auto blocked = [&](const std::string& executor, const std::string& value) {
    const std::string labels = "executor=\"" + executor + R"(",placement="remote")";
    return metrics_lines(f.registry).contains(series("sluice_worker_blocked_seconds_total", labels, value));
  };
  pipeline::OpCosts nothing_read;
  f.metrics.count_ops(nothing_read);
  for (const std::string& line : metrics_lines(f.registry)) CHECK(line.find("blocked") == std::string::npos);
  pipeline::OpCosts cached{.read = {0.5, 1}};
  f.metrics.count_ops(cached);
  CHECK(blocked("native", "0"));
  pipeline::OpCosts slow{.read = {0.5, 1}, .blocked_seconds = 2};
  f.metrics.count_ops(slow);
  f.metrics.count_ops(slow);
  CHECK(blocked("native", "2"));
  f.metrics.count_blocked(ExecutorKind::kPython, 0.25);
  f.metrics.count_blocked(ExecutorKind::kPython, -1);
  CHECK(blocked("python", "0.25"));
  CHECK(blocked("native", "2"));
}

TEST_CASE("the memory series keeps the largest working set, and is not there before the first") {
  RegisteredMetrics f;
  for (const std::string& line : metrics_lines(f.registry)) CHECK(line.find("memory") == std::string::npos);
  for (const std::size_t bytes : {100u, 300u, 200u}) f.metrics.saw_memory(bytes);
  CHECK(metrics_lines(f.registry).contains(series("sluice_worker_memory_peak_bytes", R"(placement="remote")", "300")));
}

TEST_CASE("counters never fall: what a child claims to have given back is not believed") {
  RegisteredMetrics f;
  f.metrics.count_batch(ExecutorKind::kPython, 1, 4, 10);
  f.metrics.count_batch(ExecutorKind::kPython, 1, -1000, 10);
  f.metrics.count_error(ExecutorKind::kPython, -1);
  pipeline::OpCosts backwards{.read = {-1, 0}};
  f.metrics.count_ops(backwards);
  const Lines lines = metrics_lines(f.registry);
  CHECK(lines.contains(series("sluice_worker_busy_seconds_total", R"(executor="python",placement="remote")", "4")));
  CHECK(lines.contains(series("sluice_worker_op_seconds_total", R"(op="read",placement="remote")", "0")));
}

TEST_CASE("threads and queue are what was set last") {
  RegisteredMetrics f;
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
