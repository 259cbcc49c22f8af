// PythonExecutor against children that behave and misbehave (testing/python/sluice/executor.py).
#include "src/executor/python_executor.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"
#include "src/executor/testing/executor_run.h"
#include "src/executor/thread_pool.h"

namespace sluice::executor {
namespace {

TEST_CASE("children beyond the threads are as many as half of the free memory holds") {
  struct Case {
    const char* story;
    std::size_t children;
    std::optional<std::size_t> available_bytes, child_bytes;
    std::size_t want;
  };
  const Case cases[] = {{"memory is not known", 2, std::nullopt, 100 * kTestMiB, 2 + ThreadPool::kJobsBesideMax},
                        {"nothing was measured", 0, 1024 * kTestMiB, std::nullopt, 8},
                        {"small ones", 3, 1024 * kTestMiB, kTestMiB, 11},
                        {"large ones", 3, 1024 * kTestMiB, 200 * kTestMiB, 5},
                        {"no room for one more", 3, 100 * kTestMiB, 200 * kTestMiB, 3},
                        {"no room at all", 0, 0, 200 * kTestMiB, 2}};
  for (const Case& each : cases) {
    INFO(each.story);
    CHECK(children_fitting(each.children, 2, each.available_bytes, each.child_bytes) == each.want);
  }
}

TEST_CASE("a batch's tensors are in the arena, its structure beside them") {
  ExecutorRun f;
  auto outcome = f.run(f.request(behaviour("echo")));
  REQUIRE(std::holds_alternative<Batch>(outcome));
  const Batch& batch = std::get<Batch>(outcome);
  std::int64_t values[5];
  REQUIRE(batch.tensors.at(0).nbytes == sizeof(values));
  std::memcpy(values, batch.slot.data() + batch.tensors[0].offset, sizeof(values));
  const std::int64_t want[5] = {10, 20, 30, /*seq=*/7, /*worker_id = seq mod num_workers=*/1};
  CHECK(std::memcmp(values, want, sizeof(want)) == 0);
  CHECK(batch.structure == "structure");
  CHECK(batch.busy_seconds == 0.25);
}

TEST_CASE("an idle child is used again by its own pipeline only") {
  ExecutorRun f;
  const BatchRequest first = f.request(behaviour("echo"));
  const BatchRequest second = f.request(R"({"behaviour": "echo", "other": 1})");
  f.run(first);
  f.run(first);
  CHECK(f.executor.idle_children() == 1);
  f.run(second);
  CHECK(f.executor.idle_children() == 2);
  f.run(f.request(R"({"behaviour": "echo", "third": 1})"));
  CHECK(f.executor.idle_children() == 2);  // the bound: the least recently used one is given up
}

TEST_CASE("loaders that take turns keep their children until they have idled too long") {
  ExecutorRun f;
  PythonExecutor executor(
      {.arena = f.arena, .python_path = f.python_path, .idle_time_max = std::chrono::milliseconds(300)},
      idle_children_max(1));
  std::vector<BatchRequest> requests;
  for (int i = 0; i < 3; ++i) {
    requests.push_back(f.request(R"({"behaviour": "echo", "loader": )" + std::to_string(i) + "}"));
    REQUIRE(std::holds_alternative<Batch>(executor.run(requests.back(), {}, [] { return false; })));
  }
  executor.end_idle_children();
  CHECK(executor.idle_children() == 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(310));
  executor.end_idle_children();
  CHECK(executor.idle_children() == 0);
}

TEST_CASE("children of a forgotten pipeline go soon, those of another one stay") {
  ExecutorRun f;
  PythonExecutor executor(
      {.arena = f.arena, .python_path = f.python_path, .orphan_time_max = std::chrono::milliseconds(0)},
      idle_children_max(1));
  const BatchRequest kept = f.request(behaviour("echo"));
  for (const BatchRequest& request : {kept, f.request(R"({"behaviour": "echo", "other": 1})")})
    REQUIRE(std::holds_alternative<Batch>(executor.run(request, {}, [] { return false; })));
  CHECK(executor.idle_children() == 2);
  executor.end_idle_children();
  CHECK(executor.idle_children() == 1);
}

TEST_CASE("the children of one pipeline are ended, also one that still runs a batch") {
  ExecutorRun f;
  const testing::TemporaryDirectory folder;
  const nlohmann::json waits{{"behaviour", "meet"}, {"folder", folder.path.string()}, {"children", 2}};
  const BatchRequest first = f.request(waits.dump()), second = f.request(behaviour("echo"));
  f.run(second);
  std::jthread runs([&] { f.run(first); });
  while (std::filesystem::is_empty(folder.path)) std::this_thread::yield();
  std::jthread ends([&] { f.executor.end_children(*first.pipeline, {}); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it waits
  std::ignore = folder.file("another", "");
  ends.join();
  runs.join();
  CHECK(f.executor.idle_children() == 1);
  f.executor.end_children(*second.pipeline, {});
  CHECK(f.executor.idle_children() == 0);
}

TEST_CASE("a user's exception comes back with type, traceback and pickle, and the child lives on") {
  ExecutorRun f;
  const BatchFailure failure = f.failure(f.request(behaviour("raise")));
  CHECK(failure.failure.exception_type == "KeyError");
  CHECK(failure.failure.traceback == "line 1");
  CHECK(failure.exception == "pickled");
  CHECK(!failure.executor_fault);
  CHECK(f.executor.idle_children() == 1);
}

TEST_CASE("a child that dies is replaced once") {
  ExecutorRun f;
  const testing::TemporaryDirectory folder;
  const auto marker = folder.path / "marker";
  const auto outcome = f.run(f.request(R"({"behaviour": "segfault once", "marker": ")" + marker.string() + R"("})"));
  CHECK(std::holds_alternative<Batch>(outcome));
  CHECK(std::filesystem::remove(marker));
}

TEST_CASE("a batch that kills every child fails with the way they ended") {
  struct Case {
    const char* behaviour;
    const char* want;
  };
  for (const Case& test :
       {Case{"segfault", "was killed by signal 11 (Segmentation fault)"}, Case{"exit", "exited with code 3"},
        Case{"nonsense", "unknown type 'dance'"}, Case{"foreign answer", "a request that was not made"},
        Case{"tensor outside", "a tensor outside its slot"}, Case{"half a frame", "exited with code 0"},
        Case{"endless frame", "json_bytes is 4294967295"}}) {
    INFO(test.behaviour);
    ExecutorRun f;
    const BatchFailure failure = f.failure(f.request(behaviour(test.behaviour)));
    CHECK(failure.failure.exception_type == "RuntimeError");
    CHECK_THAT(failure.failure.message, Catch::Contains(test.want));
    CHECK(f.executor.idle_children() == 0);
    CHECK(f.arena->free_bytes() == f.arena->bytes());
  }
}

TEST_CASE("children that die while they idle fail no batch") {
  ExecutorRun f;
  const testing::TemporaryDirectory directory;
  const std::string folder = directory.path.string();
  const BatchRequest request = f.request(R"({"behaviour": "meet", "children": 2, "folder": ")" + folder + R"("})");
  {
    std::jthread first([&] { f.run(request); }), second([&] { f.run(request); });
  }
  REQUIRE(f.executor.idle_children() == 2);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const pid_t pid = std::stoi(entry.path().filename().string());
    const transport::UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    ::kill(pid, SIGKILL);
    pollfd ended{process.get(), POLLIN, 0};
    REQUIRE(::poll(&ended, 1, 60'000) == 1);
  }
  // Both would have been tried, and the batch given up as one that kills its children.
  CHECK(std::holds_alternative<Batch>(f.run(request)));
  CHECK(f.executor.idle_children() == 1);
}

TEST_CASE("a child that ends after its answer costs a new child, not the next batch") {
  ExecutorRun f;
  const BatchRequest request = f.request(behaviour("die afterwards"));
  for (int i = 0; i < 4; ++i) CHECK(std::holds_alternative<Batch>(f.run(request)));
}

TEST_CASE("a structure of many megabytes comes back whole") {
  ExecutorRun f;
  auto outcome = f.run(f.request(R"({"behaviour": "echo", "structure_bytes": 20000000})"));
  REQUIRE(std::holds_alternative<Batch>(outcome));
  CHECK(std::get<Batch>(outcome).structure == std::string(20000000, 's'));
}

TEST_CASE("a batch that waits for memory gets it, or ends when it is stopped") {
  ExecutorRun f;
  transport::ArenaSlot all = f.arena->try_allocate(f.arena->bytes());
  const BatchRequest request = f.request(behaviour("echo"));
  std::stop_source stop;
  std::variant<Batch, BatchFailure> outcome;
  std::jthread runner([&] { outcome = f.executor.run(request, stop.get_token(), [] { return false; }); });
  SECTION("memory comes") {
    all = {};
    runner.join();
    CHECK(std::holds_alternative<Batch>(outcome));
  }
  SECTION("the end comes first") {
    stop.request_stop();
    runner.join();
    CHECK(std::get<BatchFailure>(outcome).executor_fault);
  }
}

TEST_CASE("a pipeline that cannot be loaded fails with the user's exception, at once the second time") {
  ExecutorRun f;
  const BatchRequest request = f.request(behaviour("cannot load"));
  CHECK(f.failure(request).failure.exception_type == "ImportError");
  CHECK(f.failure(request).failure.message == "no module");
  CHECK(f.executor.warm(request.pipeline, {}).has_value());
}

TEST_CASE("a wait for a load is told, with what has come of it; that for an idle child is none") {
  using Told = std::vector<std::pair<LoadWait, bool>>;
  ExecutorRun f;
  Told told;
  PythonExecutor executor({.arena = f.arena, .python_path = f.python_path}, 2,
                          [&](const Pipeline&, LoadWait wait, bool is_loaded) { told.emplace_back(wait, is_loaded); });
  const auto told_of = [&](const BatchRequest& request) {
    (void)executor.run(request, {}, [] { return false; });
    return std::exchange(told, {});
  };
  const BatchRequest echo = f.request(behaviour("echo")), broken = f.request(behaviour("cannot load"));
  CHECK(told_of(echo) == Told{{LoadWait::kBegins, false}, {LoadWait::kEnds, true}});
  CHECK(told_of(echo).empty());
  CHECK(told_of(broken) == Told{{LoadWait::kBegins, false}, {LoadWait::kEnds, false}});
  CHECK(told_of(broken).empty());  // the failure is remembered
}

TEST_CASE("an interpreter that does not exist is this machine's fault, not the data's") {
  ExecutorRun f;
  const BatchFailure failure = f.failure(f.request(behaviour("echo"), "/no/such/python"));
  CHECK(failure.executor_fault);
  CHECK_THAT(failure.failure.message, Catch::Contains("/no/such/python"));
}

TEST_CASE("a batch larger than the arena is refused by name, and the child lives on") {
  ExecutorRun f;
  const BatchFailure failure = f.failure(f.request(R"({"behaviour": "echo", "alloc_bytes": 1000000000})"));
  CHECK_THAT(failure.failure.message, Catch::Contains("--arena-bytes"));
  CHECK(f.executor.idle_children() == 1);
}

TEST_CASE("a child that hangs is killed when its batch is cancelled, or at the executor's end") {
  ExecutorRun f;
  const BatchRequest request = f.request(behaviour("hang"));
  SECTION("cancelled") {
    const auto outcome = f.executor.run(request, {}, [] { return true; });
    CHECK(std::holds_alternative<BatchFailure>(outcome));
  }
  SECTION("cancelled while it hangs") {
    std::atomic<bool> cancelled = false;
    std::jthread other([&] {
      f.executor.warm(f.request(behaviour("echo")).pipeline, {});
      cancelled = true;
    });
    const auto outcome = f.executor.run(request, {}, [&] { return cancelled.load(); });
    CHECK(std::get<BatchFailure>(outcome).executor_fault);
  }
  SECTION("stopped") {
    std::stop_source stop;
    std::jthread other([&] {
      f.executor.warm(f.request(behaviour("echo")).pipeline, {});
      stop.request_stop();
    });
    const auto outcome = f.executor.run(request, stop.get_token(), [] { return false; });
    CHECK(std::get<BatchFailure>(outcome).executor_fault);
  }
}

TEST_CASE("warming starts the child that the first batch uses") {
  ExecutorRun f;
  const BatchRequest request = f.request(behaviour("echo"));
  CHECK(!f.executor.warm(request.pipeline, {}).has_value());
  CHECK(f.executor.idle_children() == 1);
  f.run(request);
  CHECK(f.executor.idle_children() == 1);
}

TEST_CASE("children are gone when the executor is") {
  {
    ExecutorRun f;
    f.run(f.request(behaviour("echo")));
    CHECK(f.executor.idle_children() == 1);
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) < 0);  // none left, not even a zombie
}

}  // namespace
}  // namespace sluice::executor
