#include "operator/observe/scrape_window.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "operator/observe/prometheus_source.h"
#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::observe {
namespace {

constexpr double kNowSeconds = 1'000'000;

// A Prometheus whose queries are all answered by 1, and a source that asks it.
struct Scraped {
  double interval_seconds = 5;
  std::optional<double> scrapes;  // instead of what the interval tells
  sluice::testing::ManualClock clock;
  PrometheusSource source{[this](const std::string& expression, std::stop_token, std::chrono::milliseconds) {
                            return Result(answer(expression));
                          },
                          config(), clock};

  static control::MetricsSource config() {
    control::MetricsSource source;
    source.url = "http://prometheus:9090";
    source.window_seconds = 30;
    source.queries = {"a[$window]", "b[$window]", "c[$window]", "d[$window]", "e", "f", "g", "h",
                      "i",          "j",          "k",          "l",          "m", "n", "o", "scrapes[$window]"};
    return source;
  }

  prom::InstantVector answer(const std::string& expression) const {
    double value = 1;
    if (const std::string name = "scrapes["; expression.starts_with(name))
      value = scrapes.value_or(std::floor(std::stod(expression.substr(name.size())) / interval_seconds));
    return {{{{{"namespace", "default"}, {"training_job", "vision"}}, value, kNowSeconds}}, {}, {}};
  }

  double measured_window_seconds() {
    const Observations observations = source.observe({});
    const scheduler::Observation vision = observations.of({"default", "vision"});
    REQUIRE(vision.measurement);
    return vision.measurement->window_seconds;
  }
};

TEST_CASE("the window grows until pods are scraped four times in it") {
  struct Row {
    double interval_seconds;
    int want_seconds;
  };
  for (const Row& row : {Row{1, 30}, {5, 30}, {10, 60}, {30, 120}, {60, 240}, {120, 480}, {200, 600}}) {
    CAPTURE(row.interval_seconds);
    Scraped scraped;
    scraped.interval_seconds = row.interval_seconds;
    CHECK(scraped.measured_window_seconds() == 30);
    for (int round = 0; round < 10; ++round) scraped.source.observe({});
    CHECK(scraped.measured_window_seconds() == row.want_seconds);
  }
}

TEST_CASE("a window that has grown shrinks once pods are scraped more often, and not below what is configured") {
  Scraped scraped;
  scraped.interval_seconds = 60;
  for (int round = 0; round < 10; ++round) scraped.source.observe({});
  REQUIRE(scraped.source.window_seconds() == 240);
  scraped.interval_seconds = 1;
  for (int round = 0; round < 10; ++round) scraped.source.observe({});
  CHECK(scraped.source.window_seconds() == 30);
}

TEST_CASE("a window comes to rest at every interval") {
  for (int interval_seconds = 1; interval_seconds <= 150; ++interval_seconds) {
    CAPTURE(interval_seconds);
    Scraped scraped;
    scraped.interval_seconds = interval_seconds;
    for (int round = 0; round < 10; ++round) scraped.source.observe({});
    const int rest_seconds = scraped.source.window_seconds();
    CHECK(rest_seconds >= 4 * interval_seconds);
    scraped.source.observe({});
    CHECK(scraped.source.window_seconds() == rest_seconds);
  }
}

TEST_CASE("a job is told that its pods are scraped too rarely, with the fields and the way out") {
  struct Row {
    double interval_seconds;
    std::string want;  // empty: nothing
  };
  const std::string way_out = ": scrape every 7 s (podMonitor.interval, or scrape_interval of your Prometheus).";
  const std::string late = "Prometheus scrapes the jobs' pods so rarely that decisions look back ";
  for (const Row& row :
       {Row{5, ""}, Row{15, ""},
        Row{60, late + "240 s and not 30 s (metrics.windowSeconds), and so come late" + way_out},
        Row{200,
            "Prometheus scrapes the jobs' pods fewer than 4 times in 600 s, too rarely for a decision" + way_out}}) {
    CAPTURE(row.interval_seconds);
    Scraped scraped;
    scraped.interval_seconds = row.interval_seconds;
    for (int round = 0; round < 10; ++round) scraped.source.observe({});
    CHECK(scraped.source.observe({}).rare_scrapes == row.want);
  }
}

TEST_CASE("a window of more than ten minutes stays as it is configured") {
  ScrapeWindow window(900);
  window.take(0);
  CHECK(window.seconds() == 900);
  window.take(100);
  CHECK(window.seconds() == 900);
}

TEST_CASE("the window stays where the number of scrapes cannot be used") {
  for (const double unusable : {std::numeric_limits<double>::quiet_NaN(), -1.0, 1e300}) {
    CAPTURE(unusable);
    Scraped scraped;
    scraped.scrapes = unusable;
    for (int round = 0; round < 3; ++round) CHECK(scraped.measured_window_seconds() == 30);
  }
}

}  // namespace
}  // namespace sluice::observe
