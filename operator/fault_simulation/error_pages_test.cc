#include "operator/fault_simulation/error_pages.h"

#include <nlohmann/json.hpp>
#include <set>

#include "src/base/testing/catch.h"
#include "src/kube/status.h"
#include "src/kube/watch.h"

namespace sluice::simulation {
namespace {

using nlohmann::json;

TEST_CASE("pages come with every status, and what is told of them is text") {
  Random random(1);
  std::set<int> statuses;
  for (int i = 0; i < 500; ++i) {
    const http::Response page = draw_error_page(random);
    statuses.insert(page.status);
    const Error error = kube::error_of_response("get", page.status, page.body);
    CHECK(error.message().size() < 1000);
    CHECK_NOTHROW(json(error.message()).dump());
  }
  CHECK(statuses.size() > 10);
}

TEST_CASE("a damaged answer is never the answer, and in half of the cases no JSON") {
  const std::string answer =
      R"({"status": "success", "data": {"result": [{"metric": {"a": "b"}, "value": [1, "2"]}]}})";
  Random random(1);
  int unreadable = 0;
  for (int i = 0; i < 500; ++i) {
    const std::string body = draw_damaged_body(random, answer);
    const json read = json::parse(body, nullptr, false);
    unreadable += read.is_discarded();
    CHECK_FALSE(read == json::parse(answer));
  }
  CHECK(unreadable > 150);
  CHECK(unreadable < 350);
}

TEST_CASE("a line that is no event changes nothing that is watched") {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const auto event = kube::parse_watch_event(draw_watch_line(random));
    if (event.ok()) CHECK(event->type == kube::WatchEventType::kBookmark);
  }
}

}  // namespace
}  // namespace sluice::simulation
