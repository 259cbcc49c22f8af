#include "operator/publish/operation_metrics.h"

#include <prometheus/collectable.h>

#include "src/base/testing/catch.h"
#include "src/http/exposition.h"

namespace sluice::control {
namespace {

TEST_CASE("each scrape shows how the operator fares at that moment") {
  Operation now{
      .leads = true, .queue_depths = {{"training_job", 3}, {"data_worker_pool", 0}}, .watch_ages = {{"pods", 12.5}}};
  const auto metrics = make_operation_metrics([&now] { return now; });
  const auto scrape = [&metrics] { return http::metrics_page({metrics})({}).body; };
  const std::string page = scrape();
  for (const char* line :
       {"sluice_operator_leader 1\n", R"(sluice_operator_queue_depth{controller="training_job"} 3)",
        R"(sluice_operator_queue_depth{controller="data_worker_pool"} 0)",
        R"(sluice_operator_watch_age_seconds{resource="pods"} 12.5)", R"(sluice_operator_build_info{version=")"})
    CHECK_THAT(page, Catch::Contains(line));

  const std::size_t memory = page.find("\nprocess_resident_memory_bytes ");
  REQUIRE(memory != std::string::npos);
  CHECK(std::stod(page.substr(memory + 31)) > 1e6);

  now.leads = false;
  CHECK_THAT(scrape(), Catch::Contains("sluice_operator_leader 0\n"));
}

}  // namespace
}  // namespace sluice::control
