// The tree of forks, with interpreters that note who loads a pipeline (testing/python/sluice/executor.py).
#include "src/executor/python_zygotes.h"

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::executor {
namespace {

using nlohmann::json;

struct ZygoteFork {
  std::shared_ptr<transport::Arena> arena = *transport::Arena::create(std::size_t{1} << 20);
  PythonOptions options{.arena = arena,
                        .python_path = std::filesystem::absolute("src/executor/testing/python").string()};
  PythonZygotes zygotes{options};
  testing::TemporaryDirectory folder;
  std::uint64_t next_number = 7;

  PipelineHandle pipeline(json description) {
    description["loads"] = folder.path.string();
    auto made = make_pipeline(next_number++, ExecutorKind::kPython,
                              *transport::SealedMemory::copy_of(description.dump()), "/usr/bin/python3", 2);
    REQUIRE(made.ok());
    return *made;
  }

  std::unique_ptr<PythonChild> child(const PipelineHandle& pipeline) {
    auto started = zygotes.start_child(pipeline, {});
    REQUIRE(std::holds_alternative<std::unique_ptr<PythonChild>>(started));
    return std::get<std::unique_ptr<PythonChild>>(std::move(started));
  }

  static std::variant<Batch, BatchFailure, ChildLost> run(PythonChild& child, const PipelineHandle& pipeline) {
    BatchRequest request;
    request.pipeline = pipeline;
    request.indices = {1, 2};
    return child.run(request, {}, [] { return false; });
  }

  // How many processes have loaded a pipeline.
  std::ptrdiff_t loads() const {
    return std::distance(std::filesystem::directory_iterator(folder.path), std::filesystem::directory_iterator());
  }
};

json fork_of_behaviour(const char* name) { return {{"behaviour", name}}; }

pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  pid_t parent = 0;
  file >> number >> name >> state >> parent;
  return parent;
}

TEST_CASE("one process loads a pipeline, however many children run it") {
  struct Case {
    const char* name;
    bool has_threads;
    std::ptrdiff_t want_loads;
  };
  for (const Case& test :
       {Case{"forked from one", false, 1}, Case{"it has threads, so each child loads for itself", true, 3}}) {
    INFO(test.name);
    ZygoteFork f;
    json description = fork_of_behaviour("echo");
    description["threads"] = test.has_threads;
    const auto pipeline = f.pipeline(description);
    std::vector<std::unique_ptr<PythonChild>> children;
    std::set<pid_t> pids;
    for (int i = 0; i < 3; ++i) {
      children.push_back(f.child(pipeline));
      pids.insert(children.back()->pid());
      CHECK(std::holds_alternative<Batch>(f.run(*children.back(), pipeline)));
    }
    CHECK(pids.size() == 3);
    CHECK(f.loads() == test.want_loads);
  }
}

TEST_CASE("threads that want the first child at once wait for one load", "[threads]") {
  ZygoteFork f;
  const auto pipeline = f.pipeline(fork_of_behaviour("echo"));
  std::vector<std::unique_ptr<PythonChild>> children(4);
  {
    std::vector<std::jthread> threads;
    for (auto& child : children) {
      threads.emplace_back([&f, &pipeline, &child] {
        auto started = f.zygotes.start_child(pipeline, {});
        if (auto* made = std::get_if<std::unique_ptr<PythonChild>>(&started)) child = std::move(*made);
      });
    }
  }
  for (const auto& child : children) CHECK(child != nullptr);
  CHECK(f.loads() == 1);
}

TEST_CASE("pipelines of one interpreter share what it has imported") {
  ZygoteFork f;
  const auto first = f.pipeline(fork_of_behaviour("echo"));
  const auto second = f.pipeline(fork_of_behaviour("no tensors"));
  const auto child_of_first = f.child(first);
  const auto child_of_second = f.child(second);
  const pid_t loaded_first = parent_of(child_of_first->pid());
  const pid_t loaded_second = parent_of(child_of_second->pid());
  CHECK(loaded_first != loaded_second);
  CHECK(parent_of(loaded_first) == parent_of(loaded_second));
}

TEST_CASE("a pipeline that is described again under another number is the one that was loaded") {
  ZygoteFork f;
  const auto first = f.pipeline(fork_of_behaviour("echo"));
  const auto child = f.child(first);
  const auto again = f.pipeline(fork_of_behaviour("echo"));
  REQUIRE(first->number != again->number);
  const auto other = f.child(again);
  CHECK(std::holds_alternative<Batch>(f.run(*other, again)));
  CHECK(f.loads() == 1);
}

TEST_CASE("a forked child's end is told as any child's") {
  struct Case {
    const char* behaviour;
    const char* want;
  };
  for (const Case& test :
       {Case{"exit", "exited with code 3"}, Case{"segfault", "was killed by signal 11 (Segmentation fault)"}}) {
    ZygoteFork f;
    const auto pipeline = f.pipeline(fork_of_behaviour(test.behaviour));
    const auto child = f.child(pipeline);
    const auto outcome = f.run(*child, pipeline);
    REQUIRE(std::holds_alternative<ChildLost>(outcome));
    CHECK_THAT(std::get<ChildLost>(outcome).how, Catch::EndsWith(test.want));
  }
}

TEST_CASE("a zygote that was killed takes its children along and is replaced") {
  ZygoteFork f;
  const auto pipeline = f.pipeline(fork_of_behaviour("echo"));
  const auto child = f.child(pipeline);
  REQUIRE(::kill(parent_of(child->pid()), SIGKILL) == 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!child->has_ended() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  const auto outcome = f.run(*child, pipeline);
  REQUIRE(std::holds_alternative<ChildLost>(outcome));
  CHECK_THAT(std::get<ChildLost>(outcome).how, Catch::Contains("ended with its parent"));
  const auto next = f.child(pipeline);
  CHECK(std::holds_alternative<Batch>(f.run(*next, pipeline)));
}

TEST_CASE("a pipeline that fails to load is tried anew by the next one who asks") {
  ZygoteFork f;
  const auto pipeline = f.pipeline(fork_of_behaviour("cannot load"));
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto started = f.zygotes.start_child(pipeline, {});
    REQUIRE(std::holds_alternative<BatchFailure>(started));
    CHECK(std::get<BatchFailure>(started).failure.exception_type == "ImportError");
  }
}

TEST_CASE("zygotes go when they idle, but not before their children") {
  ZygoteFork f;
  f.options.idle_time_max = std::chrono::milliseconds(0);
  const auto pipeline = f.pipeline(fork_of_behaviour("echo"));
  auto child = f.child(pipeline);
  const pid_t zygote = parent_of(child->pid());
  f.zygotes.end_idle();
  CHECK(parent_of(f.child(pipeline)->pid()) == zygote);
  child.reset();
  f.zygotes.end_idle();
  CHECK(::kill(zygote, 0) != 0);
}

}  // namespace
}  // namespace sluice::executor
