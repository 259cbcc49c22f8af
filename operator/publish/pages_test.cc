#include "operator/publish/pages.h"

#include <atomic>

#include "src/base/testing/catch.h"
#include "src/http/testing/raw_client.h"

namespace sluice::control {
namespace {

using http::testing::ask;
using http::testing::RawClient;

const PageAddresses kLocal{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"};

PageSources sources() {
  return {.health = [] { return Result<void>(); },
          .ready = [] { return true; },
          .plan = [](const http::Query&) { return http::Page{.body = "the plan\n"}; },
          .admission = [](const std::string& token) -> Result<void> {
            if (token == "good") return {};
            return Error(ErrorCode::kUnauthenticated, "who are you?");
          }};
}

TEST_CASE("connections that say nothing, and requests that never end, do not keep a probe from its answer") {
  const auto pages = serve_pages(kLocal, sources());
  REQUIRE(pages.ok());
  std::vector<RawClient> flood;
  for (const auto* server : {&pages->metrics, &pages->probes, &pages->plan})
    for (int i = 0; i < 200; ++i) {
      flood.emplace_back((*server)->port());
      if (i % 2 == 0) flood.back().send("GET /healthz HTTP/1.1\r\nX: ");
    }
  CHECK_THAT(ask(pages->probes->port(), "GET /healthz"), Catch::StartsWith("HTTP/1.1 200"));
  CHECK_THAT(ask(pages->probes->port(), "GET /readyz"), Catch::StartsWith("HTTP/1.1 200"));
  CHECK_THAT(ask(pages->metrics->port(), "GET /metrics"), Catch::StartsWith("HTTP/1.1 200"));
  CHECK_THAT(ask(pages->plan->port(), "GET /plan", "Sluice-Token: good\r\n"), Catch::EndsWith("the plan\n"));
}

TEST_CASE("a plan that takes long does not keep a probe from its answer") {
  std::atomic<bool> computing = false, done = false;
  PageSources slow = sources();
  slow.plan = [&](const http::Query&) {
    computing = true;
    computing.notify_all();
    done.wait(false);
    return http::Page{};
  };
  const auto pages = serve_pages(kLocal, slow);
  REQUIRE(pages.ok());
  RawClient asking(pages->plan->port());
  asking.send("GET /plan HTTP/1.1\r\nSluice-Token: good\r\nConnection: close\r\n\r\n");
  computing.wait(false);
  CHECK_THAT(ask(pages->probes->port(), "GET /healthz"), Catch::StartsWith("HTTP/1.1 200"));
  CHECK_THAT(ask(pages->metrics->port(), "GET /metrics"), Catch::StartsWith("HTTP/1.1 200"));
  done = true;
  done.notify_all();
  CHECK_THAT(asking.read_all(), Catch::StartsWith("HTTP/1.1 200"));
}

TEST_CASE("the plan is for admitted readers, and on no other port") {
  const auto pages = serve_pages(kLocal, sources());
  REQUIRE(pages.ok());
  CHECK_THAT(ask(pages->plan->port(), "GET /plan"), Catch::StartsWith("HTTP/1.1 401"));
  CHECK_THAT(ask(pages->plan->port(), "GET /plan", "Sluice-Token: forged\r\n"), Catch::StartsWith("HTTP/1.1 401"));
  for (const auto* server : {&pages->metrics, &pages->probes})
    CHECK_THAT(ask((*server)->port(), "GET /plan", "Sluice-Token: good\r\n"), Catch::StartsWith("HTTP/1.1 404"));
  const auto without = serve_pages({kLocal.metrics, kLocal.probes, ""}, sources());
  REQUIRE(without.ok());
  CHECK(without->plan == nullptr);
}

TEST_CASE("health and readiness are told apart, with the reason") {
  PageSources sick = sources();
  sick.health = []() -> Result<void> { return internal_error("the decision loop has hung for 600 s"); };
  sick.ready = [] { return false; };
  const auto pages = serve_pages(kLocal, sick);
  REQUIRE(pages.ok());
  const std::string health = ask(pages->probes->port(), "GET /healthz");
  CHECK_THAT(health, Catch::StartsWith("HTTP/1.1 503"));
  CHECK_THAT(health, Catch::EndsWith("the decision loop has hung for 600 s\n"));
  CHECK_THAT(ask(pages->probes->port(), "GET /readyz"), Catch::EndsWith("waiting for the first lists\n"));
}

}  // namespace
}  // namespace sluice::control
