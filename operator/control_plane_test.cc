#include "operator/control_plane.h"

#include <atomic>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::control {
namespace {

// Answers nothing until it is released or stopped.
class SilentTransport final : public http::Transport {
 public:
  Result<http::Response> send(const http::Request&, std::chrono::milliseconds, std::stop_token stop) override {
    const std::stop_callback on_stop(stop, [this] { release(); });
    asked = true;
    asked.notify_all();
    ++under_way;
    under_way.notify_all();
    released.wait(false);
    return unavailable("released");
  }
  Result<http::Response> stream(const http::Request&, http::ByteSink&, std::chrono::milliseconds,
                                std::stop_token) override {
    return unavailable("no streams here");
  }
  void release() {
    released = true;
    released.notify_all();
  }

  std::atomic<bool> asked = false, released = false;
  std::atomic<int> under_way = 0;
};

struct Fixture {
  sluice::testing::ManualClock clock;
  std::shared_ptr<SilentTransport> prometheus = std::make_shared<SilentTransport>();
  kube::Client client{std::make_shared<SilentTransport>(), clock};
  Config config = [] {
    Config config;
    config.resize_feeders = false;
    config.metrics.url = "http://prometheus";
    return config;
  }();
  ControlPlane plane{config, client, std::make_shared<prom::Client>(prometheus), clock, [] { return 0.5; }, "test"};

  void pass(Clock::Duration duration) { clock.advance(duration); }
};

TEST_CASE_METHOD(Fixture, "a decision loop that hangs is named, and one that goes on is not") {
  CHECK(plane.health().ok());
  pass(2 * kHungAfter);
  CHECK(plane.health().ok());  // a standby decides nothing
  std::jthread loop([&](std::stop_token stop) { plane.parts().decisions.run(stop); });
  prometheus->asked.wait(false);
  pass(kHungAfter - std::chrono::seconds(1));
  CHECK(plane.health().ok());
  pass(std::chrono::seconds(1));
  const auto hung = plane.health();
  REQUIRE_FALSE(hung.ok());
  CHECK_THAT(hung.error().message(), Catch::Contains("decision loop has hung for 600 s"));
  prometheus->release();
  clock.wait_for_sleepers(1);
  CHECK(plane.health().ok());
}

// The API server, as far as it counts what reaches it.
class CountingTransport final : public http::Transport {
 public:
  Result<http::Response> send(const http::Request&, std::chrono::milliseconds, std::stop_token) override {
    ++requests;
    return http::Response{200, {}, R"({"kind": "Pod"})"};
  }
  Result<http::Response> stream(const http::Request&, http::ByteSink&, std::chrono::milliseconds,
                                std::stop_token) override {
    return unavailable("no streams here");
  }

  std::atomic<int> requests = 0;
};

TEST_CASE("a replica that no longer leads sends no write, and sends it again once it leads") {
  sluice::testing::ManualClock clock;
  const auto server = std::make_shared<CountingTransport>();
  const kube::Client client{server, clock};
  const Config config;
  act::ClusterSeams seams;
  ControlPlane plane{config,
                     client,
                     nullptr,
                     clock,
                     [] { return 0.5; },
                     "test",
                     [&](act::ClusterSeams product) {
                       seams = product;
                       return product;
                     }};
  bool leads = true;
  plane.write_only_while([&] { return leads; });
  const kube::Action write{kube::Verb::kDelete, kube::kPods, {"default", "worker"}};

  CHECK(seams.perform(write, {}).ok());
  CHECK(server->requests == 1);

  leads = false;
  const auto refused = seams.perform(write, {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::kUnavailable);
  CHECK_THAT(refused.error().message(), Catch::Contains("another replica may lead"));
  CHECK(server->requests == 1);

  leads = true;
  CHECK(seams.perform(write, {}).ok());
  CHECK(server->requests == 2);
}

// The API server with nothing in it. It does not stream lists; its watches say nothing.
class EmptyServer final : public http::Transport {
 public:
  Result<http::Response> send(const http::Request& request, std::chrono::milliseconds, std::stop_token) override {
    if (request.target.starts_with("/api/v1/pods")) ++lists_of_pods;
    return http::Response{200, {}, R"({"kind": "List", "metadata": {"resourceVersion": "5"}, "items": []})"};
  }
  Result<http::Response> stream(const http::Request& request, http::ByteSink&, std::chrono::milliseconds,
                                std::stop_token stop) override {
    if (request.target.find("sendInitialEvents") != std::string::npos) return http::Response{400, {}, "{}"};
    std::atomic<bool> stopped = false;
    const std::stop_callback on_stop(stop, [&stopped] {
      stopped = true;
      stopped.notify_all();
    });
    stopped.wait(false);
    return unavailable("stopped");
  }

  std::atomic<int> lists_of_pods = 0;
};

TEST_CASE("a replica that begins to lead sees everything again before it writes") {
  sluice::testing::ManualClock clock;
  const auto server = std::make_shared<EmptyServer>();
  const kube::Client client{server, clock};
  const Config config;
  ControlPlane plane{config, client, nullptr, clock, [] { return 0.5; }, "test"};
  const auto wait_until_ready = [&] {
    while (!plane.ready()) std::this_thread::yield();
  };
  plane.watch();
  wait_until_ready();
  REQUIRE(server->lists_of_pods == 1);
  plane.lead();
  wait_until_ready();
  CHECK(server->lists_of_pods == 2);
}

TEST_CASE("a leader asks Prometheus several questions beside each other") {
  sluice::testing::ManualClock clock;
  const kube::Client client{std::make_shared<EmptyServer>(), clock};
  const auto prometheus = std::make_shared<SilentTransport>();
  Config config;
  config.resize_feeders = false;
  config.metrics.url = "http://prometheus";
  ControlPlane plane{config, client, std::make_shared<prom::Client>(prometheus), clock, [] { return 0.5; }, "test"};
  plane.watch();
  plane.lead();
  for (int seen = 0; seen < kQueriesAtOnce; seen = prometheus->under_way) prometheus->under_way.wait(seen);
  CHECK(prometheus->under_way == kQueriesAtOnce);
  prometheus->release();
}

}  // namespace
}  // namespace sluice::control
