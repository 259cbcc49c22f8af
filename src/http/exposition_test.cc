#include "src/http/exposition.h"

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include "src/base/testing/catch.h"

namespace sluice::http {

TEST_CASE("the page holds every live registry's metrics") {
  auto first = std::make_shared<prometheus::Registry>();
  auto second = std::make_shared<prometheus::Registry>();
  prometheus::BuildCounter().Name("first_total").Help("h").Register(*first).Add({{"rank", "0"}}).Increment(3);
  prometheus::BuildCounter().Name("second_total").Help("h").Register(*second).Add({}).Increment();
  const auto page = metrics_page({first, second});

  CHECK(page({}).status == 200);
  CHECK(page({}).content_type == "text/plain; version=0.0.4; charset=utf-8");
  CHECK_THAT(page({}).body, Catch::Contains("first_total{rank=\"0\"} 3"));
  CHECK_THAT(page({}).body, Catch::Contains("second_total 1"));

  second.reset();
  CHECK_THAT(page({}).body, !Catch::Contains("second_total"));
}

}  // namespace sluice::http
