// The whole feeder between a client on its socket and made-up workers. They answer late, in any order, twice, with
// errors, but never with wrong bytes. They join, drain, refuse pipelines and vanish with their work; time passes, so
// that batches become late. Whatever they do, the client gets every batch once, with the right bytes, and all memory
// comes back. Seeded; time passes only where the seed says so.
#include <map>
#include <mutex>
#include <optional>
#include <random>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/base/testing/temporary_directory.h"
#include "src/executor/testing/metrics_text.h"
#include "src/executor/testing/whole_batch.h"
#include "worker-image/feeder/feeder.h"
#include "worker-image/testing/eventually.h"
#include "worker-image/testing/picture_folder.h"
#include "worker-image/testing/test_client.h"

namespace sluice::feeder {
namespace {

using testing::PictureFolder;
using testing::TestClient;

executor::Batch make_batch(transport::Arena& arena, const executor::BatchRequest& request) {
  const std::size_t bytes = request.pipeline->native->schema().batch_bytes(request.indices.size());
  auto slot = arena.allocate(bytes, {});
  REQUIRE(slot.ok());
  executor::NativeScratch scratch;
  REQUIRE(testing::make_whole_batch(request, {slot->data(), bytes}, scratch).ok());
  return {std::move(slot).value(), executor::native_tensors(*request.pipeline, request.indices.size()), "", 0};
}

// What the feeder has asked of workers. Thread safety: all methods may be called from any thread.
class FakeWorkers final : public RemoteExecutors {
 public:
  struct Attempt {
    ExecutorId executor = 0;
    RequestId id = 0;
    executor::RequestHandle request;
  };

  void load(ExecutorId executor, executor::PipelineHandle pipeline) override {
    std::lock_guard lock(mutex_);
    loads_.emplace_back(executor, pipeline->number);
  }
  void execute(ExecutorId executor, RequestId id, executor::RequestHandle request) override {
    std::lock_guard lock(mutex_);
    attempts_.push_back({executor, id, std::move(request)});
  }
  transport::ArenaSlot cancel(ExecutorId, RequestId) override { return {}; }

  std::vector<std::pair<ExecutorId, PipelineNumber>> take_loads() {
    std::lock_guard lock(mutex_);
    return std::exchange(loads_, {});
  }
  // One of the attempts, chosen by `chosen`; nullopt if there are none.
  std::optional<Attempt> take(std::size_t chosen) {
    std::lock_guard lock(mutex_);
    if (attempts_.empty()) return std::nullopt;
    const auto attempt = attempts_.begin() + static_cast<long>(chosen % attempts_.size());
    const Attempt taken = *attempt;
    attempts_.erase(attempt);
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<ExecutorId, PipelineNumber>> loads_;
  std::vector<Attempt> attempts_;
};

// The feeder and its made-up workers.
class World {
 public:
  explicit World(std::uint32_t seed) : random_(seed) {
    feeder_->set_remote(workers_);
    auto server = SocketServer::start(socket(), *feeder_);
    REQUIRE(server.ok());
    server_ = std::move(server).value();
  }
  ~World() {
    server_.reset();
    feeder_.reset();
  }

  std::string socket() const { return (directory_.path / "feeder.sock").string(); }
  transport::Arena& arena() { return *arena_; }
  std::size_t pick(std::size_t below) { return random_() % below; }

  void something_happens() {
    switch (pick(13)) {
      case 12: return clock_.advance(std::chrono::milliseconds(pick(500)));
      case 0: return join();
      case 1: return lose();
      case 2: return drain();
      case 3: return fail();
      case 4: return answer_twice();
      case 5: return refuse();
      case 6: return feeder_->tick(1);
      default: return answer();
    }
  }

  // What would otherwise keep a batch waiting for ever: every worker answers what it holds.
  Feeder& feeder() { return *feeder_; }

  bool answer_something() {
    get_ready();
    const auto attempt = workers_.take(0);
    if (attempt) finish(*attempt);
    return attempt.has_value();
  }

  void check_counters_never_fall() {
    std::map<std::string, double> now;
    for (const auto& family : registry_.Collect()) {
      if (family.type != prometheus::MetricType::Counter) continue;
      for (const auto& series : family.metric) {
        std::string key = family.name;
        for (const auto& label : series.label) key += "|" + label.value;
        now[key] = series.counter.value;
      }
    }
    for (const auto& [key, value] : counters_) REQUIRE(now[key] >= value);
    counters_ = std::move(now);
  }
  bool shows(const std::string& line) const { return testing::metrics_lines(registry_).contains(line); }
  double counter(const std::string& key) const {
    const auto found = counters_.find(key);
    return found == counters_.end() ? 0 : found->second;
  }

 private:
  void join() {
    if (alive_.size() >= 4) return;
    alive_.push_back(next_executor_++);
    feeder_->executor_joined(alive_.back(), "made-up", 1 + pick(2), 1 + pick(4), 0);
  }

  void lose() {
    if (alive_.empty()) return;
    const std::size_t chosen = pick(alive_.size());
    feeder_->executor_lost(alive_[chosen], "for the test");
    // What it held may still be on its way: answers of the lost come in later, as of the living.
    alive_.erase(alive_.begin() + static_cast<long>(chosen));
  }

  void drain() {
    if (!alive_.empty()) feeder_->executor_draining(alive_[pick(alive_.size())]);
    feeder_->executor_draining(next_executor_ + 1000);  // one that never said hello
  }

  // Pipelines that were sent to workers are ready there, or refused.
  void get_ready() {
    for (const auto& [executor, pipeline] : workers_.take_loads()) feeder_->pipeline_ready(executor, pipeline);
  }

  void refuse() {
    for (const auto& [executor, pipeline] : workers_.take_loads())
      feeder_->pipeline_refused(executor, pipeline, "for the test");
  }

  void answer() {
    get_ready();
    if (const auto attempt = workers_.take(pick(100))) finish(*attempt);
  }

  void answer_twice() {
    const auto attempt = workers_.take(pick(100));
    if (!attempt) return;
    finish(*attempt);
    finish(*attempt);
  }

  void finish(const FakeWorkers::Attempt& attempt) {
    feeder_->finished(attempt.executor, attempt.id, make_batch(*arena_, *attempt.request));
  }

  void fail() {
    const auto attempt = workers_.take(pick(100));
    if (attempt)
      feeder_->finished(attempt->executor, attempt->id, executor::to_failure(internal_error("for the test")));
  }

  std::mt19937 random_;
  const testing::TemporaryDirectory directory_;
  const std::shared_ptr<transport::Arena> arena_ = *transport::Arena::create(std::size_t{4} << 20);
  sluice::testing::ManualClock clock_;
  prometheus::Registry registry_;
  executor::ExecutorMetrics executor_metrics_{registry_, {"job", "namespace"}, "local"};
  FeederMetrics metrics_{registry_, {"job", "namespace"}};
  FakeWorkers workers_;
  std::unique_ptr<Feeder> feeder_ = std::make_unique<Feeder>(
      Feeder::Options{.local = {.threads = 1, .threads_max = 1, .arena = arena_}, .session = "test"}, clock_,
      executor_metrics_, metrics_);
  std::unique_ptr<SocketServer> server_;
  std::vector<ExecutorId> alive_;
  ExecutorId next_executor_ = kLocalExecutor + 1;
  std::map<std::string, double> counters_;
};

constexpr std::size_t kPropertyBatches = 60;

TEST_CASE("every batch comes once and right, however workers join, vanish, fail, repeat themselves and lag",
          "[property]") {
  const PictureFolder pictures(8);
  const auto run = [&](World& world, bool disturbed) {
    TestClient client(world.socket());
    client.open("native", pictures.specification(8));
    return client.run(
        kPropertyBatches, 4, 8,
        [&](std::size_t) {
          for (std::size_t i = disturbed ? 1 + world.pick(6) : 0; i > 0; --i) world.something_happens();
          world.check_counters_never_fall();
          // The local thread alone would get there, too: but then nothing would be tried.
          if (!disturbed || world.pick(3) > 0) world.answer_something();
        },
        [&] { return world.answer_something(); });
  };
  World undisturbed(0);
  const auto want = run(undisturbed, false);
  std::size_t remote = 0, reissued = 0, hedged = 0;
  for (std::uint32_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    const auto got = run(world, true);  // throws if a batch came twice, or as an error
    REQUIRE(got.size() == kPropertyBatches);
    CHECK(testing::same_bytes(got, want));
    while (world.answer_something()) {
    }
    CHECK(testing::eventually([&] { return world.arena().free_bytes() == world.arena().bytes(); }));
    world.check_counters_never_fall();
    remote += static_cast<std::size_t>(world.counter("sluice_feeder_batches_total|namespace|job|remote"));
    reissued += static_cast<std::size_t>(world.counter("sluice_feeder_reissued_batches_total|namespace|job"));
    hedged += static_cast<std::size_t>(world.counter("sluice_feeder_hedged_batches_total|namespace|job"));
    CHECK(world.counter("sluice_feeder_batches_total|namespace|job|remote") +
              world.counter("sluice_feeder_batches_total|namespace|job|local") ==
          kPropertyBatches);
  }
  // The test would be worth nothing if the workers had never been in the way.
  CHECK(remote > 0);
  CHECK(reissued > 0);
  CHECK(hedged > 0);
}

TEST_CASE("only workers that said hello are counted, whatever is told of others") {
  World world(0);
  const auto workers = [&](const char* count) {
    return world.shows(R"(sluice_feeder_remote_workers{job_namespace="namespace",training_job="job"} )" +
                       std::string(count));
  };
  world.feeder().executor_draining(100);  // it drained when we came
  world.feeder().pipeline_refused(101, 1, "late");
  world.feeder().executor_joined(1, "made-up", 1, 2, 0);
  CHECK(workers("1"));
  world.feeder().executor_draining(1);
  CHECK(workers("1"));
  world.feeder().executor_lost(1, "for the test");
  CHECK(workers("0"));
}

TEST_CASE("a client that vanishes with its batches under way leaves nothing behind, and the next one is served",
          "[property]") {
  const PictureFolder pictures(8);
  for (std::uint32_t seed = 1; seed <= 10; ++seed) {
    INFO("seed " << seed);
    World world(seed);
    for (int life = 0; life < 3; ++life) {
      TestClient client(world.socket());
      client.open("native", pictures.specification(8));
      for (std::uint64_t seq = 0; seq < 12; ++seq) client.request(seq, {0, 1, 2});
      for (std::size_t i = 0; i < 20; ++i) world.something_happens();
      client.take_batch(client.receive([&] { world.answer_something(); }), /*release=*/false);
    }
    const auto nothing_held = [&] {
      world.answer_something();  // what workers still hold is answered into the void
      return world.arena().free_bytes() == world.arena().bytes();
    };
    CHECK(testing::eventually(nothing_held));
    TestClient client(world.socket());
    client.open("native", pictures.specification(8));
    client.request(0, {3});
    CHECK(client.receive([&] { world.answer_something(); }).json["type"] == "batch");
  }
}

}  // namespace
}  // namespace sluice::feeder
