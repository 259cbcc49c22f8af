#include "src/http/request_metrics.h"

#include <prometheus/collectable.h>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/exposition.h"
#include "src/http/testing/scripted_transport.h"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::ScriptedStream;
using testing::ScriptedTransport;

TEST_CASE("requests are counted by method and what came of them, watches when they end, with their bytes") {
  const auto server = std::make_shared<ScriptedTransport>();
  sluice::testing::ManualClock clock;
  RequestMetrics metrics;
  const auto transport = metrics.observe(server, clock);
  server->answer(200, "");
  server->answer(409, "");
  server->answer(unavailable("refused"));
  server->answer(ScriptedStream{{"12345", "678"}});
  for (const char* method : {"GET", "PATCH", "GET"}) (void)transport->send({method, "/x"}, 1s, {});
  struct Sink final : ByteSink {
    Result<void> on_bytes(std::string_view) override { return {}; }
  } sink;
  (void)transport->stream({"GET", "/x"}, sink, 1s, {});

  const std::string page = metrics_page({metrics.collectable()})({}).body;
  for (const char* line : {
           "sluice_api_requests_total{code=\"200\",method=\"GET\"} 1",
           "sluice_api_requests_total{code=\"409\",method=\"PATCH\"} 1",
           "sluice_api_requests_total{code=\"Unavailable\",method=\"GET\"} 1",
           "sluice_api_requests_total{code=\"200\",method=\"WATCH\"} 1",
           "sluice_api_request_seconds_count{method=\"GET\"} 2",
           "sluice_api_stream_bytes_total 8",
       }) {
    CHECK_THAT(page, Catch::Contains(line));
  }
}

}  // namespace
}  // namespace sluice::http
