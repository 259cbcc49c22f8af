#include "operator/observe/prometheus_source.h"

#include <map>
#include <set>

#include "src/base/testing/catch.h"
#include "src/http/testing/scripted_transport.h"

namespace sluice::observe {
namespace {

constexpr double kNow = 1'000'000;
const scheduler::JobId kVision{"default", "vision"};

control::MetricsSource config() {
  control::MetricsSource source;
  source.url = "http://prometheus:9090";
  source.window_seconds = 30;
  source.queries = {"samples[$window]", "compute[$window]", "wait[$window]", "batches[$window]", "depth",
                    "capacity",         "worker[$window]",  "busy[$window]", "at_work[$window]", "age"};
  return source;
}

prom::Sample sample(double value, const std::string& placement = "", const std::string& job = "vision") {
  prom::Labels labels{{"job_namespace", "default"}, {"training_job", job}};
  if (!placement.empty()) labels["placement"] = placement;
  return {labels, value, kNow};
}

// Answers by expression; a healthy job unless a test changes something.
struct Server {
  std::map<std::string, Result<prom::InstantVector>> answers = {
      {"samples[30s]", prom::InstantVector{{sample(812)}, {}, {}}},
      {"compute[30s]", prom::InstantVector{{sample(0.8)}, {}, {}}},
      {"wait[30s]", prom::InstantVector{{sample(0.2)}, {}, {}}},
      {"batches[30s]", prom::InstantVector{{sample(400)}, {}, {}}},
      {"depth", prom::InstantVector{{sample(2)}, {}, {}}},
      {"capacity", prom::InstantVector{{sample(16)}, {}, {}}},
      {"worker[30s]", prom::InstantVector{{sample(500, "local"), sample(312, "remote")}, {}, {}}},
      {"busy[30s]", prom::InstantVector{{sample(0.5, "local"), sample(0.4, "remote")}, {}, {}}},
      {"at_work[30s]", prom::InstantVector{{sample(2)}, {}, {}}},
      {"age", prom::InstantVector{{sample(3)}, {}, {}}}};
  std::vector<std::string> asked;

  Observations observe() {
    const PrometheusSource source(
        [this](const std::string& expression, std::stop_token) {
          asked.push_back(expression);
          const auto found = answers.find(expression);
          return found == answers.end() ? Result<prom::InstantVector>(invalid_argument(expression)) : found->second;
        },
        config());
    return source.observe({});
  }
  scheduler::Observation vision() { return observe().of(kVision); }
};

TEST_CASE("a healthy job is measured with all its sources") {
  Server server;
  const auto observation = server.vision();
  REQUIRE(observation.measurement.has_value());
  const scheduler::Measurement& measured = *observation.measurement;
  CHECK(measured.samples_per_second == 812);
  CHECK(measured.compute_share == 0.8);
  CHECK(measured.wait_share == 0.2);
  CHECK(measured.batches_in_window == 400);
  CHECK(measured.window_seconds == 30);
  CHECK(measured.queue_depth == 2);
  CHECK(measured.queue_capacity == 16);
  REQUIRE(measured.local.has_value());
  REQUIRE(measured.remote.has_value());
  CHECK(measured.local->busy_cores == 0.5);
  CHECK(measured.remote->samples_per_second == 312);
  CHECK(measured.workers_at_work == 2);
}

TEST_CASE("a measurement ends at the newest scrape, so that the same scrape counts once") {
  Server server;
  CHECK(server.vision().measurement->window_end_seconds == kNow - 3);
}

TEST_CASE("the number of queries does not depend on the number of jobs") {
  Server one;
  one.observe();
  Server many;
  auto& samples = many.answers.at("samples[30s]").value().samples;
  for (int i = 0; i < 1000; ++i) samples.push_back(sample(1, "", "job-" + std::to_string(i)));
  many.observe();
  CHECK(one.asked.size() == 10);
  CHECK(many.asked == one.asked);
}

TEST_CASE("without any of the needed series there is no measurement, and the reason names it") {
  const std::string query = GENERATE("samples[30s]", "compute[30s]", "wait[30s]", "batches[30s]", "age");
  INFO(query);
  Server server;
  server.answers.at(query) = prom::InstantVector{};
  const auto observation = server.vision();
  CHECK_FALSE(observation.measurement.has_value());
  CHECK_THAT(observation.missing_reason, Catch::Contains("Prometheus has no "));
}

TEST_CASE("a value that is no number is a reason, not a zero") {
  const std::string query = GENERATE("samples[30s]", "wait[30s]");
  Server server;
  server.answers.at(query) = prom::InstantVector{{}, {{sample(0).labels, "NaN"}}, {}};
  const auto observation = server.vision();
  CHECK_FALSE(observation.measurement.has_value());
  CHECK_THAT(observation.missing_reason, Catch::Contains("is NaN"));
}

TEST_CASE("an executor without a series has no rate") {
  Server server;
  server.answers.at("worker[30s]") = prom::InstantVector{{sample(500, "local")}, {}, {}};
  server.answers.at("busy[30s]") = prom::InstantVector{{sample(0.5, "local")}, {}, {}};
  const auto observation = server.vision();
  REQUIRE(observation.measurement.has_value());
  CHECK(observation.measurement->local.has_value());
  CHECK_FALSE(observation.measurement->remote.has_value());
}

TEST_CASE("workers at work: a count, none at all, and one that cannot be trusted") {
  Server none;
  none.answers.at("at_work[30s]") = prom::InstantVector{};
  CHECK(none.vision().measurement->workers_at_work == 0);
  Server broken;
  broken.answers.at("at_work[30s]") = prom::InstantVector{{}, {{sample(0).labels, "NaN"}}, {}};
  CHECK_THAT(broken.vision().missing_reason, Catch::Contains("workersAtWork is NaN"));
}

TEST_CASE("two values for one job mean that the query does not fit this Prometheus") {
  Server server;
  server.answers.at("samples[30s]").value().samples.push_back(sample(5));
  const auto observation = server.vision();
  CHECK_FALSE(observation.measurement.has_value());
  CHECK_THAT(observation.missing_reason,
             Catch::Contains("metrics.queries.samplesPerSecond answers more than one value"));
}

TEST_CASE("series without the job's labels belong to nobody") {
  Server server;
  server.answers.at("samples[30s]").value().samples.push_back({{{"instance", "x"}}, 1, kNow});
  CHECK(server.observe().jobs.size() == 1);
}

TEST_CASE("a query that fails is the reason for every job, and the last one that is asked") {
  Server server;
  server.answers.at("compute[30s]") = unavailable("connection refused");
  const auto observations = server.observe();
  CHECK(server.asked.size() == 2);
  CHECK(observations.jobs.empty());
  CHECK_THAT(observations.of(kVision).missing_reason, Catch::Contains("connection refused"));
}

TEST_CASE("a job that Prometheus has never heard of has a reason") {
  Server server;
  const auto observation = server.observe().of({"default", "other"});
  CHECK_FALSE(observation.measurement.has_value());
  CHECK_THAT(observation.missing_reason, Catch::Contains("no series of the job"));
}

TEST_CASE("without a Prometheus nothing is asked") {
  control::MetricsSource none = config();
  none.url.clear();
  const PrometheusSource source(
      [](const std::string&, std::stop_token) -> Result<prom::InstantVector> { std::abort(); }, none);
  CHECK_THAT(source.observe({}).of(kVision).missing_reason, Catch::Contains("metrics.url is empty"));
}

TEST_CASE("over HTTP: an answer, an empty one, NaN and a server in trouble") {
  struct Case {
    const char* name;
    int status;
    const char* body;
    const char* want_reason;
  };
  const std::string sample_json =
      R"({"metric":{"job_namespace":"default","training_job":"vision"},"value":[1000000,"%"]})";
  const Case test = GENERATE(Case{"answer", 200, "1", ""}, Case{"NaN", 200, "NaN", "is NaN"},
                             Case{"empty", 200, "", "no series of the job"}, Case{"5xx", 503, "", "failed"});
  INFO(test.name);
  auto transport = std::make_shared<http::testing::ScriptedTransport>();
  transport->respond_with([&](const http::Request&) -> std::optional<http::testing::ScriptedTransport::Answer> {
    std::string value = sample_json;
    value.replace(value.find('%'), 1, test.body);
    if (*test.body == '\0') value.clear();
    return http::Response{
        test.status, {}, R"({"status":"success","data":{"resultType":"vector","result":[)" + value + "]}}"};
  });
  const prom::Client client(transport);
  const PrometheusSource source(
      [&](const std::string& expression, std::stop_token stop) { return client.query(expression, stop); }, config());
  const auto observation = source.observe({}).of(kVision);
  CHECK(observation.measurement.has_value() == (*test.want_reason == '\0'));
  CHECK_THAT(observation.missing_reason, Catch::Contains(test.want_reason));
}

}  // namespace
}  // namespace sluice::observe
