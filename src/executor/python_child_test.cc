// One child and its protocol, from the start of the interpreter to its loss (testing/python/sluice/executor.py).
#include "src/executor/python_child.h"

#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/executor/testing/memory_store.h"

namespace sluice::executor {
namespace {

using nlohmann::json;
using Started = std::variant<std::unique_ptr<PythonChild>, BatchFailure>;

struct ChildStart {
  std::shared_ptr<transport::Arena> arena = *transport::Arena::create(std::size_t{1} << 20);
  PythonOptions options{.arena = arena,
                        .python_path = std::filesystem::absolute("src/executor/testing/python").string()};
  ProcessSpawner spawner;
  std::stop_source stop;
  PipelineHandle started;  // the last

  PipelineHandle pipeline(const json& description, std::uint32_t num_workers = 2) const {
    auto made = make_pipeline(7, ExecutorKind::kPython, *transport::SealedMemory::copy_of(description.dump()),
                              "/usr/bin/python3", num_workers);
    REQUIRE(made.ok());
    return *made;
  }

  Started start(const PipelineHandle& pipeline) {
    started = pipeline;
    auto interpreter = spawn_interpreter(options, spawner, pipeline->python);
    if (!interpreter.ok()) return executor_failure(interpreter.error().message());
    if (auto failure = load_pipeline(*interpreter, *pipeline, options, stop.get_token())) return *std::move(failure);
    return std::make_unique<PythonChild>(options, pipeline, pipeline->number, std::move(interpreter).value());
  }

  std::unique_ptr<PythonChild> child(const json& description, std::uint32_t num_workers = 2) {
    Started started = start(pipeline(description, num_workers));
    REQUIRE(std::holds_alternative<std::unique_ptr<PythonChild>>(started));
    return std::get<std::unique_ptr<PythonChild>>(std::move(started));
  }

  std::variant<Batch, BatchFailure, ChildLost> run(PythonChild& child, std::uint64_t seq = 0,
                                                   std::vector<std::int64_t> indices = {1, 2},
                                                   StateHandle state = nullptr) {
    BatchRequest request;
    request.pipeline = started;
    request.state = std::move(state);
    request.seq = seq;
    request.base_seed = 5;
    request.epoch = 6;
    request.position = 8;
    request.indices = std::move(indices);
    return child.run(request, stop.get_token(), [] { return false; });
  }

  bool all_memory_is_free() const { return arena->free_bytes() == arena->bytes(); }
};

json child_of_behaviour(const char* name) { return {{"behaviour", name}}; }

TEST_CASE("a child that does not come up is this machine's failure, with the way it ended") {
  struct Case {
    const char* behaviour;
    std::chrono::seconds start_time_max;
    const char* want;
  };
  for (const Case& test :
       {Case{"die while loading", std::chrono::seconds(60), "exited with code 5, while it was loading the pipeline"},
        Case{"never load", std::chrono::seconds(1), "no frame arrived in time"},
        Case{"nonsense while loading", std::chrono::seconds(60), "unknown type 'dance'"},
        Case{"answers before it is asked", std::chrono::seconds(60), "it answered load with something else"}}) {
    INFO(test.behaviour);
    ChildStart f;
    f.options.start_time_max = test.start_time_max;
    const Started started = f.start(f.pipeline(child_of_behaviour(test.behaviour)));
    REQUIRE(std::holds_alternative<BatchFailure>(started));
    const auto& failure = std::get<BatchFailure>(started);
    CHECK(failure.executor_fault);
    CHECK(failure.failure.exception_type == "ExecutorLost");
    CHECK_THAT(failure.failure.message, Catch::Contains(test.want));
  }
}

TEST_CASE("what the user's code raises while it is loaded is the user's") {
  ChildStart f;
  const Started started = f.start(f.pipeline(child_of_behaviour("cannot load")));
  const auto& failure = std::get<BatchFailure>(started);
  CHECK(!failure.executor_fault);
  CHECK(failure.failure.exception_type == "ImportError");
}

TEST_CASE("the end does not wait for a child that loads for ever") {
  ChildStart f;
  std::jthread ender([&] { f.stop.request_stop(); });
  const Started started = f.start(f.pipeline(child_of_behaviour("never load")));
  CHECK(std::get<BatchFailure>(started).executor_fault);
}

TEST_CASE("a request reaches the child with all that seeds and sharding need") {
  struct Case {
    const char* name;
    std::uint32_t num_workers;
    std::uint64_t seq;
    int want_worker, want_workers;
  };
  for (const Case& test : {Case{"the first of two workers", 2, 4, 0, 2}, Case{"the second", 2, 5, 1, 2},
                           Case{"no workers count as one", 0, 5, 0, 1}}) {
    INFO(test.name);
    ChildStart f;
    const auto child = f.child({{"behaviour", "environment"}, {"names", json::array()}}, test.num_workers);
    const auto outcome = f.run(*child, test.seq, {10, -1});
    REQUIRE(std::holds_alternative<Batch>(outcome));
    const json message = json::parse(std::get<Batch>(outcome).structure)["message"];
    CHECK(message["seq"] == test.seq);
    CHECK(message["base_seed"] == 5);
    CHECK(message["epoch"] == 6);
    CHECK(message["position"] == 8);
    CHECK(message["indices"] == json{10, -1});
    CHECK(message["pipeline"] == 7);
    CHECK(message["worker_id"] == test.want_worker);
    CHECK(message["num_workers"] == test.want_workers);
  }
}

TEST_CASE("a child is told the state of its pipeline only when it changes") {
  ChildStart f;
  const auto child = f.child({{"behaviour", "environment"}, {"names", json::array()}});
  const auto first = std::make_shared<PipelineState>(PipelineState{1, "epoch 1"});
  const auto second = std::make_shared<PipelineState>(PipelineState{2, "epoch 2"});
  json states;
  for (const StateHandle& state : {StateHandle(), StateHandle(first), StateHandle(first), StateHandle(second), {}}) {
    const auto outcome = f.run(*child, 0, {1}, state);
    REQUIRE(std::holds_alternative<Batch>(outcome));
    states = json::parse(std::get<Batch>(outcome).structure)["states"];
  }
  CHECK(states == json{{7, "epoch 1"}, {7, "epoch 2"}, {7, ""}});
}

TEST_CASE("a child is an orphan once no one else has its pipeline, and may be adopted") {
  ChildStart f;
  const auto child = f.child(child_of_behaviour("echo"));
  CHECK(!child->is_orphan());
  f.started.reset();
  CHECK(child->is_orphan());
  const PipelineHandle again = f.pipeline(child_of_behaviour("echo"));
  REQUIRE(child->runs(*again));
  child->adopt(again);
  CHECK(!child->is_orphan());
  CHECK(!child->runs(*f.pipeline(child_of_behaviour("raise"))));
}

TEST_CASE("a child's own threads, path and priority are set for it") {
  ChildStart f;
  const int ours = ::getpriority(PRIO_PROCESS, 0);
  f.options.nice = std::max(1, ours);  // it can only go up
  ::unsetenv("OMP_NUM_THREADS");
  ::setenv("PYTHONPATH", "/the/users/own", 1);
  const auto child =
      f.child({{"behaviour", "environment"}, {"names", {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONPATH"}}});
  ::unsetenv("PYTHONPATH");
  const auto outcome = f.run(*child);
  const json environment = json::parse(std::get<Batch>(outcome).structure);
  CHECK(environment["OMP_NUM_THREADS"] == "1");
  CHECK(environment["OPENBLAS_NUM_THREADS"] == "1");
  CHECK(environment["PYTHONPATH"] == f.options.python_path + ":/the/users/own");
  CHECK(environment["nice"] == std::max(1, ours));
}

TEST_CASE("a user's choice of threads stands") {
  ChildStart f;
  ::setenv("OMP_NUM_THREADS", "3", 1);
  const auto child = f.child({{"behaviour", "environment"}, {"names", {"OMP_NUM_THREADS"}}});
  ::unsetenv("OMP_NUM_THREADS");
  const auto outcome = f.run(*child);
  CHECK(json::parse(std::get<Batch>(outcome).structure)["OMP_NUM_THREADS"] == "3");
}

TEST_CASE("one child serves many batches, one after the other") {
  ChildStart f;
  const auto child = f.child(child_of_behaviour("echo"));
  for (std::uint64_t seq = 0; seq < 20; ++seq) {
    auto outcome = f.run(*child, seq, {static_cast<std::int64_t>(100 + seq)});
    REQUIRE(std::holds_alternative<Batch>(outcome));
    const Batch& batch = std::get<Batch>(outcome);
    std::int64_t values[2];
    std::memcpy(values, batch.slot.data() + batch.tensors.at(0).offset, sizeof(values));
    CHECK(values[0] == static_cast<std::int64_t>(100 + seq));
    CHECK(values[1] == static_cast<std::int64_t>(seq));
    CHECK(batch.ops == std::vector<transport::OpCost>{{"dataset", 0.125, 0}, {"collate", 0.0625, 24}});
  }
  CHECK(!child->lost());
  CHECK(!child->has_ended());
  CHECK(f.all_memory_is_free());
}

TEST_CASE("a batch without tensors needs no memory; one that describes memory it never asked for loses its child") {
  ChildStart f;
  SECTION("without tensors") {
    const auto child = f.child(child_of_behaviour("no tensors"));
    const auto outcome = f.run(*child);
    REQUIRE(std::holds_alternative<Batch>(outcome));
    CHECK(!std::get<Batch>(outcome).slot.valid());
  }
  SECTION("tensors without memory") {
    const auto child = f.child(child_of_behaviour("no alloc"));
    const auto outcome = f.run(*child);
    REQUIRE(std::holds_alternative<ChildLost>(outcome));
    CHECK_THAT(std::get<ChildLost>(outcome).how, Catch::Contains("outside its slot"));
    CHECK(child->lost());
  }
}

TEST_CASE("a child finds results that an earlier batch has kept, where there is a cache") {
  ChildStart f;
  const SystemClock clock;
  const bool has_cache = GENERATE(true, false);
  if (has_cache) f.options.kept = std::make_shared<KeptCalls>(std::make_shared<testing::MemoryStore>(), clock);
  const auto child = f.child(child_of_behaviour("keeps results"));
  const auto told = [&](std::uint64_t seq) {
    auto outcome = f.run(*child, seq);
    REQUIRE(std::holds_alternative<Batch>(outcome));
    return std::get<Batch>(std::move(outcome));
  };
  const Batch first = told(0), second = told(1);
  CHECK(json::parse(first.structure)["load"].contains("keeps_results") == has_cache);
  CHECK(json::parse(first.structure)["is_found"] == false);
  CHECK(json::parse(second.structure)["is_found"] == has_cache);
  CHECK(json::parse(second.structure)["value"] == (has_cache ? "result" : ""));
  REQUIRE(second.kept.size() == (has_cache ? 1 : 0));
  if (has_cache) CHECK(second.kept[0] == transport::KeptCost{"m.f", 1, 1, 0, 0});
}

TEST_CASE("a child that asks for memory again and again holds one slot at a time") {
  ChildStart f;
  const auto child = f.child({{"behaviour", "echo"}, {"allocs", 50}, {"alloc_bytes", 400 << 10}});
  auto outcome = f.run(*child);
  REQUIRE(std::holds_alternative<Batch>(outcome));
  CHECK(f.arena->free_bytes() == f.arena->bytes() - std::get<Batch>(outcome).slot.bytes());
}

TEST_CASE("a cancelled batch may go on for the time of grace, then its child is killed") {
  ChildStart f;
  f.options.cancel_grace = std::chrono::seconds(0);
  const auto child = f.child(child_of_behaviour("hang"));
  BatchRequest request;
  request.pipeline = f.pipeline(child_of_behaviour("hang"));
  const auto outcome = child->run(request, {}, [] { return true; });
  REQUIRE(std::holds_alternative<ChildLost>(outcome));
  CHECK_THAT(std::get<ChildLost>(outcome).how, Catch::Contains("its batch was cancelled"));
  CHECK(child->has_ended());
}

}  // namespace
}  // namespace sluice::executor
