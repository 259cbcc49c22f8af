// PythonExecutor against children that behave and misbehave (testing/python/sluice/executor.py).
#include "src/executor/python_executor.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "src/base/testing/catch.h"

namespace sluice::executor {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Fixture {
  std::shared_ptr<transport::Arena> arena = *transport::Arena::create(4 * kMiB);
  PythonExecutor executor{{.arena = arena,
                           .python_path = std::filesystem::absolute("src/executor/testing/python").string(),
                           .cancel_grace = std::chrono::seconds(0)},
                          2};
  std::uint64_t next_pipeline = 1;

  BatchRequest request(const std::string& blob, const std::string& python = "/usr/bin/python3") {
    auto pipeline = make_pipeline(next_pipeline++, ExecutorKind::kPython, blob, python, 3);
    REQUIRE(pipeline.ok());
    BatchRequest request;
    request.pipeline = *pipeline;
    request.seq = 7;
    request.indices = {10, 20, 30};
    return request;
  }

  std::variant<Batch, BatchFailure> run(const BatchRequest& request) {
    return executor.run(request, {}, [] { return false; });
  }

  BatchFailure failure(const BatchRequest& request) {
    auto outcome = run(request);
    REQUIRE(std::holds_alternative<BatchFailure>(outcome));
    return std::get<BatchFailure>(outcome);
  }
};

std::string behaviour(const std::string& name) { return R"({"behaviour": ")" + name + R"("})"; }

TEST_CASE("a batch's tensors are in the arena, its structure beside them") {
  Fixture f;
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
  Fixture f;
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

TEST_CASE("a user's exception comes back with type, traceback and pickle, and the child lives on") {
  Fixture f;
  const BatchFailure failure = f.failure(f.request(behaviour("raise")));
  CHECK(failure.failure.exception_type == "KeyError");
  CHECK(failure.failure.traceback == "line 1");
  CHECK(failure.exception == "pickled");
  CHECK(!failure.executor_fault);
  CHECK(f.executor.idle_children() == 1);
}

TEST_CASE("a child that dies is replaced once") {
  Fixture f;
  const auto marker = std::filesystem::temp_directory_path() / ("python_executor_test." + std::to_string(::getpid()));
  std::filesystem::remove(marker);
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
        Case{"nonsense", "unknown type 'dance'"}, Case{"foreign answer", "a request that nobody made"},
        Case{"tensor outside", "a tensor outside its slot"}, Case{"half a frame", "exited with code 0"},
        Case{"endless frame", "json_bytes is 4294967295"}}) {
    INFO(test.behaviour);
    Fixture f;
    const BatchFailure failure = f.failure(f.request(behaviour(test.behaviour)));
    CHECK(failure.failure.exception_type == "RuntimeError");
    CHECK_THAT(failure.failure.message, Catch::Contains(test.want));
    CHECK(f.executor.idle_children() == 0);
    CHECK(f.arena->free_bytes() == f.arena->bytes());
  }
}

TEST_CASE("children that die while they idle are nobody's failure") {
  Fixture f;
  std::string folder = (std::filesystem::temp_directory_path() / "python_executor_test.XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const BatchRequest request = f.request(R"({"behaviour": "meet", "children": 2, "folder": ")" + folder + R"("})");
  {
    std::jthread first([&] { f.run(request); }), second([&] { f.run(request); });
  }
  REQUIRE(f.executor.idle_children() == 2);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const pid_t pid = std::stoi(entry.path().filename().string());
    ::kill(pid, SIGKILL);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  }
  // Both would have been tried, and the batch given up as one that kills its children.
  CHECK(std::holds_alternative<Batch>(f.run(request)));
  CHECK(f.executor.idle_children() == 1);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a child that ends after its answer costs a new child, not the next batch") {
  Fixture f;
  const BatchRequest request = f.request(behaviour("die afterwards"));
  for (int i = 0; i < 4; ++i) CHECK(std::holds_alternative<Batch>(f.run(request)));
}

TEST_CASE("a structure of many megabytes comes back whole") {
  Fixture f;
  auto outcome = f.run(f.request(R"({"behaviour": "echo", "structure_bytes": 20000000})"));
  REQUIRE(std::holds_alternative<Batch>(outcome));
  CHECK(std::get<Batch>(outcome).structure == std::string(20000000, 's'));
}

TEST_CASE("a batch that waits for memory gets it, or ends when it is stopped") {
  Fixture f;
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
  Fixture f;
  const BatchRequest request = f.request(behaviour("cannot load"));
  CHECK(f.failure(request).failure.exception_type == "ImportError");
  CHECK(f.failure(request).failure.message == "no module");
  CHECK(f.executor.warm(request.pipeline, {}).has_value());
}

TEST_CASE("an interpreter that does not exist is this machine's fault, not the data's") {
  Fixture f;
  const BatchFailure failure = f.failure(f.request(behaviour("echo"), "/no/such/python"));
  CHECK(failure.executor_fault);
  CHECK_THAT(failure.failure.message, Catch::Contains("/no/such/python"));
}

TEST_CASE("a batch larger than the arena is refused by name, and the child lives on") {
  Fixture f;
  const BatchFailure failure = f.failure(f.request(R"({"behaviour": "echo", "alloc_bytes": 1000000000})"));
  CHECK_THAT(failure.failure.message, Catch::Contains("--arena-bytes"));
  CHECK(f.executor.idle_children() == 1);
}

TEST_CASE("a child that hangs is killed when nobody wants its batch, or when we end") {
  Fixture f;
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
  Fixture f;
  const BatchRequest request = f.request(behaviour("echo"));
  CHECK(!f.executor.warm(request.pipeline, {}).has_value());
  CHECK(f.executor.idle_children() == 1);
  f.run(request);
  CHECK(f.executor.idle_children() == 1);
}

TEST_CASE("children are gone when the executor is") {
  {
    Fixture f;
    f.run(f.request(behaviour("echo")));
    CHECK(f.executor.idle_children() == 1);
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) < 0);  // none left, not even a zombie
}

}  // namespace
}  // namespace sluice::executor
