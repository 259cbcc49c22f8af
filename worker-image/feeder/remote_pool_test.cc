// Who is connected to, when again, and who is forgotten; on a clock that the test moves and without a network.
#include "worker-image/feeder/remote_pool.h"

#include <atomic>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/transport/worker_forms.h"
#include "worker-image/testing/eventually.h"
#include "worker-image/testing/fake_wire.h"

namespace sluice::feeder {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::string kFirst = "10.0.0.1:7471", kSecond = "10.0.0.2:7471";

class PoolEvents final : public ExecutorEvents {
 public:
  void executor_joined(ExecutorId executor, const std::string&, std::size_t, std::size_t, std::size_t) override {
    last_joined = executor;
  }
  void executor_refused(const std::string&, std::uint32_t) override { ++refused; }
  void executor_draining(ExecutorId) override {}
  void executor_lost(ExecutorId, const std::string&) override { ++lost; }
  void pipeline_ready(ExecutorId, PipelineNumber) override {}
  void pipeline_refused(ExecutorId, PipelineNumber, const std::string&) override {}
  void finished(ExecutorId, RequestId, BatchOutcome) override {}

  std::atomic<ExecutorId> last_joined = 0;
  std::atomic<int> lost = 0;
  std::atomic<int> refused = 0;
};

struct PoolOfWorkers {
  explicit PoolOfWorkers(Addresses first_listed) : listed(std::move(first_listed)) { clock.wait_for_sleepers(1); }

  void list(Addresses addresses) {
    std::lock_guard lock(mutex);
    listed = std::move(addresses);
  }

  // So much time passes, one pass of the pool after the other.
  void pass_time(milliseconds duration) {
    for (milliseconds passed{0}; passed < duration; passed += RemotePool::kPassInterval) {
      const int before = passes;
      clock.advance(RemotePool::kPassInterval);
      REQUIRE(testing::eventually([&] { return passes > before; }));
      clock.wait_for_sleepers(1);
    }
  }

  void join(const std::string& address) {
    v1::Header hello;
    hello.mutable_hello()->set_threads(1);
    hello.mutable_hello()->set_credits(2);
    hello.mutable_hello()->set_protocol(transport::kProtocolVersion);
    wire.say(address, hello);
  }

  std::mutex mutex;
  Addresses listed;
  std::atomic<int> passes = 0;
  testing::ManualClock clock;
  testing::FakeWire wire;
  PoolEvents events;
  RemotePool pool{[this] {
                    std::lock_guard lock(mutex);
                    ++passes;
                    return listed;
                  },
                  wire.connect(), *transport::Arena::create(4096), events, clock};
};

TEST_CASE("each address is connected to once, new ones as they appear") {
  PoolOfWorkers f({kFirst});
  CHECK(f.wire.connections(kFirst) == 1);
  f.list({kFirst, kSecond});
  f.pass_time(seconds(2));
  CHECK(f.wire.connections(kFirst) == 1);
  CHECK(f.wire.connections(kSecond) == 1);
}

TEST_CASE("a worker that is never reached is tried again less and less often") {
  PoolOfWorkers f({kFirst});
  // Seconds after the loss in which it is not tried, and after which it is.
  for (const int wait : {2, 4, 8, 8, 8}) {
    INFO("wait of " << wait << " s");
    const int before = f.wire.connections(kFirst);
    f.wire.close(kFirst);
    f.pass_time(RemotePool::kPassInterval);  // the pool notices
    f.pass_time(seconds(wait) - RemotePool::kPassInterval);
    CHECK(f.wire.connections(kFirst) == before);
    f.pass_time(RemotePool::kPassInterval);
    CHECK(f.wire.connections(kFirst) == before + 1);
  }
  CHECK(f.events.lost == 0);
}

TEST_CASE("a worker of another version is given up at once, and tried again less and less often") {
  PoolOfWorkers f({kFirst});
  v1::Header hello;
  hello.mutable_hello()->set_protocol(transport::kProtocolVersion + 1);
  for (const int wait : {2, 4, 8, 8}) {
    INFO("wait of " << wait << " s");
    const int before = f.wire.connections(kFirst);
    f.wire.say(kFirst, hello);
    f.pass_time(RemotePool::kPassInterval);  // the pool notices
    f.pass_time(seconds(wait) - RemotePool::kPassInterval);
    CHECK(f.wire.connections(kFirst) == before);
    f.pass_time(RemotePool::kPassInterval);
    CHECK(f.wire.connections(kFirst) == before + 1);
  }
  CHECK(f.events.refused == 4);
  CHECK(f.events.last_joined == 0);
}

TEST_CASE("a worker that had answered is back in a second, every time, with a new number") {
  PoolOfWorkers f({kFirst});
  ExecutorId last = 0;
  for (int life = 1; life <= 4; ++life) {
    INFO("life " << life);
    CHECK(f.wire.connections(kFirst) == life);
    f.join(kFirst);
    CHECK(f.events.last_joined > last);
    last = f.events.last_joined;
    f.wire.close(kFirst);
    CHECK(f.events.lost == life);
    f.pass_time(RemotePool::kPassInterval);  // the pool notices
    f.pass_time(RemotePool::kRetryMin);
  }
}

TEST_CASE("a worker whose address disappears is left alone while its stream stands, and then forgotten") {
  PoolOfWorkers f({kFirst});
  f.join(kFirst);
  f.list({});
  f.pass_time(seconds(5));
  CHECK(f.events.lost == 0);
  f.wire.close(kFirst);
  f.pass_time(seconds(20));
  CHECK(f.wire.connections(kFirst) == 1);
  f.list({kFirst});
  f.pass_time(RemotePool::kPassInterval);
  CHECK(f.wire.connections(kFirst) == 2);  // forgotten: nothing is left to wait for
}

TEST_CASE("work goes to the worker with that number, and to none if it is gone") {
  PoolOfWorkers f({kFirst, kSecond});
  f.join(kSecond);
  const ExecutorId second = f.events.last_joined;
  const auto pipeline = *executor::make_pipeline(1, executor::ExecutorKind::kPython,
                                                 *transport::SealedMemory::copy_of("blob"), "python3", 1);
  auto request = std::make_shared<executor::BatchRequest>();
  request->pipeline = pipeline;
  f.pool.load(second, pipeline);
  f.pool.execute(second, 7, request);
  f.pool.cancel(second, 7);
  f.pool.execute(second + 100, 8, request);
  CHECK(f.wire.sent(kSecond).size() == 3);
  CHECK(f.wire.sent(kFirst).empty());
  f.wire.close(kSecond);
  f.pass_time(RemotePool::kPassInterval);
  f.pool.execute(second, 9, request);
  CHECK(f.wire.sent(kSecond).size() == 3);
}

// A connection whose first message is on its way until the test lets it go, and that tells where it was destroyed.
struct SlowLine {
  class Client final : public transport::RemoteClient {
   public:
    explicit Client(SlowLine& line) : line_(line) {}
    ~Client() override { line_.ended_on = std::this_thread::get_id(); }
    void start() override {}
    void send(const v1::Header&, std::span<const std::byte>, std::shared_ptr<const void>) override {
      line_.sending = true;
      line_.sending.notify_all();
      line_.may_go_on.wait(false);
    }

   private:
    SlowLine& line_;
  };

  std::atomic<bool> sending = false;
  std::atomic<bool> may_go_on = false;
  std::thread::id ended_on;
};

TEST_CASE("a worker that is in use when the pool ends is destroyed by the pool, not by its user") {
  // The user may be an event of that worker's stream, and the destructor waits for the last of these.
  testing::ManualClock clock;
  PoolEvents events;
  SlowLine line;
  auto connect = [&](const std::string&, transport::RemoteClientHandler&) {
    return std::make_unique<SlowLine::Client>(line);
  };
  auto pool = std::make_unique<RemotePool>([] { return Addresses{kFirst}; }, connect, *transport::Arena::create(4096),
                                           events, clock);
  clock.wait_for_sleepers(1);
  const auto pipeline = *executor::make_pipeline(1, executor::ExecutorKind::kPython,
                                                 *transport::SealedMemory::copy_of("blob"), "python3", 1);
  std::jthread user([&, used = pool.get()] { used->load(kLocalExecutor + 1, pipeline); });
  line.sending.wait(false);
  std::jthread owner([&] { pool.reset(); });
  const std::thread::id owners = owner.get_id();
  std::this_thread::sleep_for(milliseconds(50));  // so that the pool is ending, or has ended, by then
  line.may_go_on = true;
  line.may_go_on.notify_all();
  user.join();
  owner.join();
  CHECK(line.ended_on == owners);
}

}  // namespace
}  // namespace sluice::feeder
