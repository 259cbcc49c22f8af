// What PythonExecutor's children keep from one batch to the next, within a pass and from one pass to another.
#include <signal.h>

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/executor/python_executor.h"
#include "src/executor/testing/executor_run.h"

namespace sluice::executor {
namespace {

nlohmann::json remembered(ExecutorRun& f, BatchRequest request, std::uint64_t seq) {
  request.seq = seq;
  request.indices = {static_cast<std::int64_t>(seq), -1};
  const auto outcome = f.run(request);
  REQUIRE(std::holds_alternative<Batch>(outcome));
  return nlohmann::json::parse(std::get<Batch>(outcome).structure);
}

TEST_CASE("a child that has read makes no batch of another pass") {
  ExecutorRun f;
  const auto child_of = [&](BatchRequest& request, std::uint64_t pass, std::uint64_t epoch = 0) {
    request.base_seed = pass;
    request.epoch = epoch;
    return remembered(f, request, 0)["pid"].get<pid_t>();
  };
  SECTION("it has read") {
    BatchRequest request = f.request(R"({"behaviour": "remembers", "reads": true})");
    const pid_t first = child_of(request, 7), other = child_of(request, 8);
    CHECK(first != other);
    CHECK(child_of(request, 7) == first);     // passes that go on at once
    CHECK(child_of(request, 8, 1) == other);  // of workers that persist
  }
  SECTION("it has not") {
    BatchRequest request = f.request(R"({"behaviour": "remembers", "reads": false})");
    CHECK(child_of(request, 7) == child_of(request, 8));
  }
}

TEST_CASE("the children that a pass leaves behind end soon") {
  ExecutorRun f;
  PythonExecutor executor(
      {.arena = f.arena, .python_path = f.python_path, .orphan_time_max = std::chrono::milliseconds(0)}, 4);
  BatchRequest request = f.request(R"({"behaviour": "remembers", "reads": true})");
  for (request.base_seed = 1; request.base_seed < 5; ++request.base_seed)
    CHECK(std::holds_alternative<Batch>(executor.run(request, {}, [] { return false; })));
  CHECK(executor.idle_children() == 1);
}

TEST_CASE("a virtual worker has a child of its own, which is rebuilt from what it has made") {
  using Words = std::vector<std::int64_t>;
  ExecutorRun f;
  BatchRequest request = f.request(behaviour("remembers"));
  request.virtual_workers = std::make_shared<VirtualWorkers>(3);
  const auto first = remembered(f, request, 0), other = remembered(f, request, 1), second = remembered(f, request, 3);
  CHECK(first["pid"] == second["pid"]);
  CHECK(first["pid"] != other["pid"]);
  CHECK(first["history"] == Words{});
  CHECK(second["history"] == Words{});
  CHECK(f.executor.idle_children() == 0);
  REQUIRE(::kill(first["pid"].get<pid_t>(), SIGKILL) == 0);
  const auto third = remembered(f, request, 6);
  CHECK(third["pid"] != first["pid"]);
  CHECK(third["history"] == Words{2, 0, -1, 2, 3, -1});
  CHECK(remembered(f, request, 4)["pid"] == other["pid"]);
  SECTION("another pass has other children, and can begin where this one is") {
    BatchRequest resumed = f.request(behaviour("remembers"));
    resumed.virtual_workers = std::make_shared<VirtualWorkers>(3);
    resumed.history = request.virtual_workers->made[0];
    const auto fourth = remembered(f, resumed, 9);
    CHECK(fourth["pid"] != third["pid"]);
    CHECK(fourth["history"] == Words{2, 0, -1, 2, 3, -1, 2, 6, -1});
  }
  SECTION("the children end with their pass") {
    request.virtual_workers.reset();
    f.executor.end_idle_children();
    CHECK(::kill(third["pid"].get<pid_t>(), 0) != 0);
  }
}

TEST_CASE("a virtual worker that is lost with a batch makes the earlier ones again, and then that") {
  ExecutorRun f;
  const testing::TemporaryDirectory folder;
  const auto marker = folder.path / "marker";
  BatchRequest request = f.request(R"({"behaviour": "segfault once", "marker": ")" + marker.string() + R"("})");
  request.virtual_workers = std::make_shared<VirtualWorkers>(3);
  CHECK(std::holds_alternative<Batch>(f.run(request)));
  CHECK(request.virtual_workers->made[1].size() == 4 * sizeof(std::int64_t));
}

TEST_CASE("of a portable virtual worker nothing is kept: its requests say what it has made") {
  ExecutorRun f;
  BatchRequest request = f.request(behaviour("remembers"));
  request.virtual_workers = std::make_shared<VirtualWorkers>(3, true);
  const auto first = remembered(f, request, 1), second = remembered(f, request, 4);
  CHECK(first["pid"] == second["pid"]);
  CHECK(request.virtual_workers->made[1].empty());
}

TEST_CASE("a virtual worker's batch that failed counts as made") {
  ExecutorRun f;
  BatchRequest request = f.request(behaviour("raise"));
  request.virtual_workers = std::make_shared<VirtualWorkers>(3);
  f.failure(request);
  CHECK(request.virtual_workers->made[1].size() == 4 * sizeof(std::int64_t));
}

}  // namespace
}  // namespace sluice::executor
