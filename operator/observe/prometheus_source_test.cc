#include "operator/observe/prometheus_source.h"

#include <limits>
#include <map>
#include <set>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"
#include "src/http/testing/scripted_transport.h"

namespace sluice::observe {
namespace {

constexpr double kAskedAt = 1'000'000;
const scheduler::JobId kAskedJob{"default", "vision"};

control::MetricsSource config() {
  control::MetricsSource source;
  source.url = "http://prometheus:9090";
  source.window_seconds = 30;
  source.queries = {"samples[$window]", "compute[$window]", "wait[$window]", "batches[$window]", "depth",
                    "capacity",         "worker[$window]",  "busy[$window]", "at_work[$window]", "bytes[$window]",
                    "read[$window]",    "blocked[$window]", "memory",        "remaining",        "age",
                    "scrapes[$window]"};
  return source;
}

prom::Sample sample(double value, const std::string& placement = "", const std::string& job = "vision") {
  prom::Labels labels{{"namespace", "default"}, {"training_job", job}};
  if (!placement.empty()) labels["placement"] = placement;
  return {labels, value, kAskedAt};
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
      {"bytes[30s]", prom::InstantVector{{sample(150'528)}, {}, {}}},
      {"read[30s]", prom::InstantVector{{sample(110'000)}, {}, {}}},
      {"blocked[30s]", prom::InstantVector{{sample(1.5)}, {}, {}}},
      {"memory", prom::InstantVector{{sample(4e8)}, {}, {}}},
      {"remaining", prom::InstantVector{{sample(64'000)}, {}, {}}},
      {"age", prom::InstantVector{{sample(3)}, {}, {}}},
      {"scrapes[30s]", prom::InstantVector{{sample(6)}, {}, {}}}};
  std::vector<std::string> asked;
  sluice::testing::ManualClock clock;

  Observations observe() {
    PrometheusSource source(
        [this](const std::string& expression, std::stop_token, std::chrono::milliseconds) {
          asked.push_back(expression);
          const auto found = answers.find(expression);
          return found == answers.end() ? Result<prom::InstantVector>(invalid_argument(expression)) : found->second;
        },
        config(), clock);
    return source.observe({});
  }
  scheduler::Observation vision() { return observe().of(kAskedJob); }
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
  REQUIRE(measured.queue.has_value());
  CHECK(measured.queue->depth == 2);
  CHECK(measured.queue->capacity == 16);
  REQUIRE(measured.local.has_value());
  REQUIRE(measured.remote.has_value());
  CHECK(measured.local->busy_cores == 0.5);
  CHECK(measured.remote->samples_per_second == 312);
  CHECK(measured.workers_at_work == 2);
  CHECK(measured.blocked_threads == 1.5);
  CHECK(measured.read_bytes_per_sample == 110'000);
  CHECK(server.observe().worker_memory_bytes_of(kAskedJob) == 4e8);
  CHECK(server.observe().remaining_samples_of(kAskedJob) == 64'000);
  CHECK_FALSE(server.observe().remaining_samples_of({"default", "speech"}));
}

TEST_CASE("a measurement ends at the newest scrape, so that the same scrape counts once") {
  Server server;
  CHECK(server.vision().measurement->window_end_seconds == kAskedAt - 3);
}

TEST_CASE("the number of queries does not depend on the number of jobs") {
  Server one;
  one.observe();
  Server many;
  auto& samples = many.answers.at("samples[30s]").value().samples;
  for (int i = 0; i < 1000; ++i) samples.push_back(sample(1, "", "job-" + std::to_string(i)));
  many.observe();
  CHECK(one.asked.size() == 16);
  CHECK(many.asked == one.asked);
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

// What a damaged answer makes of the job's measurement.
enum class Outcome {
  kHeld,         // no measurement, and a reason that names the query
  kUnknown,      // measured, without this figure
  kZero,         // measured, and the figure is zero
  kUnbounded,    // measured, and the size of a sample is not known
  kUndiagnosed,  // measured, and how many threads wait for reads is not known
  kUnsized,      // measured, and the memory of the workers is not known
  kUnread,       // measured, and what it reads is not known
  kEndless,      // measured, and the end of the job is not known
};

struct Damage {
  const char* name;
  void (*apply)(prom::InstantVector& vector);
};

void set_value(prom::InstantVector& vector, double value) { vector.samples.back().value = value; }

void refuse_value(prom::InstantVector& vector, const char* reason) {
  vector.absent.push_back({vector.samples.back().labels, reason});
  vector.samples.pop_back();
}

// To the last sample of the answer, which for executors is the remote one.
const Damage kDamages[] = {
    {"absent", [](prom::InstantVector& vector) { vector.samples.pop_back(); }},
    {"NaN", [](prom::InstantVector& vector) { refuse_value(vector, "NaN"); }},
    {"infinite", [](prom::InstantVector& vector) { refuse_value(vector, "+Inf"); }},
    {"infinite in the answer itself",
     [](prom::InstantVector& vector) { set_value(vector, std::numeric_limits<double>::infinity()); }},
    {"negative", [](prom::InstantVector& vector) { set_value(vector, -3); }},
    {"more than any job has", [](prom::InstantVector& vector) { set_value(vector, 1e300); }},
    {"stale", [](prom::InstantVector& vector) { vector.samples.back().timestamp_seconds -= 31; }},
    {"two series", [](prom::InstantVector& vector) { vector.samples.push_back(vector.samples.back()); }},
    {"without the job's label",
     [](prom::InstantVector& vector) { vector.samples.back().labels.erase("training_job"); }},
    {"with another job's label",
     [](prom::InstantVector& vector) { vector.samples.back().labels["training_job"] = "speech"; }},
};

TEST_CASE(
    "sixteen queries, each damaged in every way: a figure that is missing beside others is never taken for zero") {
  struct Query {
    const char* expression;
    const char* name;
    Outcome absent;    // no series of the job: absent, or with a wrong label
    Outcome unusable;  // a series, and no usable value
  };
  const Query queries[] = {
      {"samples[30s]", "samplesPerSecond", Outcome::kHeld, Outcome::kHeld},
      {"compute[30s]", "computeShare", Outcome::kHeld, Outcome::kHeld},
      {"wait[30s]", "dataWaitShare", Outcome::kHeld, Outcome::kHeld},
      {"batches[30s]", "batchesInWindow", Outcome::kHeld, Outcome::kHeld},
      {"age", "ageSeconds", Outcome::kHeld, Outcome::kHeld},
      {"depth", "queueDepth", Outcome::kUnknown, Outcome::kUnknown},
      {"capacity", "queueCapacity", Outcome::kUnknown, Outcome::kUnknown},
      {"worker[30s]", "workerSamplesPerSecond", Outcome::kHeld, Outcome::kHeld},
      {"busy[30s]", "workerBusyCores", Outcome::kHeld, Outcome::kHeld},
      {"at_work[30s]", "workersAtWork", Outcome::kZero, Outcome::kHeld},
      {"bytes[30s]", "bytesPerSample", Outcome::kUnbounded, Outcome::kUnbounded},
      {"blocked[30s]", "blockedThreads", Outcome::kUndiagnosed, Outcome::kUndiagnosed},
      {"read[30s]", "readBytesPerSample", Outcome::kUnread, Outcome::kUnread},
      {"memory", "workerMemoryBytes", Outcome::kUnsized, Outcome::kUnsized},
      {"remaining", "remainingSamples", Outcome::kEndless, Outcome::kEndless},
  };
  for (const Query& query : queries) {
    for (const Damage& damage : kDamages) {
      CAPTURE(query.name, damage.name);
      Server server;
      damage.apply(server.answers.at(query.expression).value());
      const scheduler::Observation observation = server.vision();
      const std::string_view how = damage.name;
      const bool absent = how == "absent" || how.ends_with("label");
      const Outcome want = absent ? query.absent : query.unusable;
      CHECK(observation.measurement.has_value() == (want != Outcome::kHeld));
      if (want == Outcome::kHeld) CHECK_THAT(observation.missing_reason, Catch::Contains(query.name));
      if (want == Outcome::kUnknown) CHECK_FALSE(observation.measurement->queue.has_value());
      CHECK(server.observe().bytes_per_sample_of(kAskedJob).has_value() == (want != Outcome::kUnbounded));
      CHECK(server.observe().worker_memory_bytes_of(kAskedJob).has_value() == (want != Outcome::kUnsized));
      CHECK(server.observe().remaining_samples_of(kAskedJob).has_value() == (want != Outcome::kEndless));
      if (want != Outcome::kHeld)
        CHECK(observation.measurement->blocked_threads.has_value() == (want != Outcome::kUndiagnosed));
      if (want != Outcome::kHeld)
        CHECK(observation.measurement->read_bytes_per_sample.has_value() == (want != Outcome::kUnread));
      if (want == Outcome::kZero) CHECK(observation.measurement->workers_at_work == 0);
    }
  }
}

TEST_CASE("an age beyond the window moves the measurement's end, which the scheduler then refuses") {
  Server server;
  set_value(server.answers.at("age").value(), 300);
  CHECK(server.vision().measurement->window_end_seconds == kAskedAt - 300);
}

TEST_CASE("a queue whose capacity is zero is not known") {
  Server server;
  set_value(server.answers.at("capacity").value(), 0);
  CHECK_FALSE(server.vision().measurement->queue.has_value());
}

TEST_CASE("executors whose placement is no known one belong to neither side") {
  Server server;
  for (const char* query : {"worker[30s]", "busy[30s]"})
    server.answers.at(query).value().samples.back().labels["placement"] = "elsewhere";
  const auto observation = server.vision();
  CHECK(observation.measurement->local.has_value());
  CHECK_FALSE(observation.measurement->remote.has_value());
}

TEST_CASE("series without the job's labels belong to no job") {
  Server server;
  server.answers.at("samples[30s]").value().samples.push_back({{{"instance", "x"}}, 1, kAskedAt});
  CHECK(server.observe().jobs.size() == 1);
}

TEST_CASE_METHOD(Server, "a server that is away is the reason for every job, and is not asked everything") {
  for (auto& [expression, answer] : answers) answer = unavailable("connection refused");
  const auto observations = observe();
  CHECK(asked.size() == 4);
  CHECK(observations.jobs.empty());
  CHECK_FALSE(observations.answered_at_seconds.has_value());
  const std::string want = "query samplesPerSecond failed: connection refused";
  CHECK(observations.of(kAskedJob).missing_reason == want);
  CHECK(observations.problem == want);
}

TEST_CASE("a query that fails makes its figure unusable, and no other") {
  struct Case {
    const char* expression;
    const char* name;
    bool decides;  // without it there is no measurement
  };
  const Case cases[] = {{"samples[30s]", "samplesPerSecond", true},
                        {"compute[30s]", "computeShare", true},
                        {"wait[30s]", "dataWaitShare", true},
                        {"batches[30s]", "batchesInWindow", true},
                        {"age", "ageSeconds", true},
                        {"worker[30s]", "workerSamplesPerSecond", true},
                        {"busy[30s]", "workerBusyCores", true},
                        {"at_work[30s]", "workersAtWork", true},
                        {"depth", "queueDepth", false},
                        {"capacity", "queueCapacity", false},
                        {"bytes[30s]", "bytesPerSample", false},
                        {"blocked[30s]", "blockedThreads", false},
                        {"read[30s]", "readBytesPerSample", false},
                        {"memory", "workerMemoryBytes", false},
                        {"remaining", "remainingSamples", false},
                        {"scrapes[30s]", "scrapesInWindow", false}};
  for (const Case& test : cases) {
    INFO(test.name);
    Server server;
    server.answers.at(test.expression) = Error(ErrorCode::kDeadlineExceeded, "no answer in time");
    const auto observations = server.observe();
    CHECK(server.asked.size() == 16);
    const std::string want = "query " + std::string(test.name) + " failed: no answer in time";
    CHECK(observations.problem == want);
    const auto vision = observations.of(kAskedJob);
    CHECK(vision.measurement.has_value() == !test.decides);
    CHECK(vision.missing_reason == (test.decides ? want : ""));
    // A job of which no answer speaks: the query that failed may have been the one that does.
    const auto unseen = observations.of({"default", "other"}).missing_reason;
    CHECK((unseen == want) == test.decides);
    const std::string_view name = test.name;
    if (!test.decides) CHECK(vision.measurement->queue.has_value() == !name.starts_with("queue"));
    CHECK(observations.bytes_per_sample_of(kAskedJob).has_value() == (name != "bytesPerSample"));
    CHECK(observations.worker_memory_bytes_of(kAskedJob).has_value() == (name != "workerMemoryBytes"));
    CHECK(observations.remaining_samples_of(kAskedJob).has_value() == (name != "remainingSamples"));
  }
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
  const sluice::testing::ManualClock clock;
  PrometheusSource source([](const std::string&, std::stop_token,
                             std::chrono::milliseconds) -> Result<prom::InstantVector> { std::abort(); },
                          none, clock);
  CHECK_THAT(source.observe({}).of(kAskedJob).missing_reason, Catch::Contains("metrics.url is empty"));
}

TEST_CASE("a pod speaks for the jobs of its own namespace only") {
  Server server;
  // A pod of namespace "mallory" that calls itself default/vision, and says that it waits for nothing.
  for (auto& [expression, answer] : server.answers) {
    prom::Sample forged = answer->samples.front();
    forged.labels["namespace"] = "mallory";
    forged.labels["job_namespace"] = forged.labels["exported_namespace"] = "default";
    forged.value = expression == "wait[30s]" ? 0 : 1;
    answer->samples.push_back(forged);
  }
  const Observations observations = server.observe();
  const auto honest = Server().vision();
  REQUIRE(observations.of(kAskedJob).measurement.has_value());
  CHECK(observations.of(kAskedJob).measurement->wait_share == honest.measurement->wait_share);
  CHECK(observations.of(kAskedJob).measurement->samples_per_second == honest.measurement->samples_per_second);
  REQUIRE(observations.of({"mallory", "vision"}).measurement.has_value());
  CHECK(observations.of({"mallory", "vision"}).measurement->wait_share == 0);
}

TEST_CASE("the scrape's label of the namespace can have another name") {
  control::MetricsSource source_config = config();
  source_config.namespace_label = "kubernetes_namespace";
  source_config.queries.samples_per_second = "by ($namespace) [$window]";
  std::string asked;
  const sluice::testing::ManualClock clock;
  const auto observe = [&](const std::string& label) {
    return PrometheusSource(
               [&](const std::string& expression, std::stop_token, std::chrono::milliseconds) {
                 if (asked.empty()) asked = expression;
                 prom::Sample placed = sample(0.5);
                 placed.labels.erase("namespace");
                 placed.labels[label] = "default";
                 return Result<prom::InstantVector>(prom::InstantVector{{placed}, {}, {}});
               },
               source_config, clock)
        .observe({});
  };
  CHECK(observe("kubernetes_namespace").of(kAskedJob).measurement.has_value());
  CHECK(asked == "by (kubernetes_namespace) [30s]");
  const auto unplaced = observe("namespace").of(kAskedJob);
  CHECK_FALSE(unplaced.measurement.has_value());
  CHECK_THAT(unplaced.missing_reason, Catch::Contains("without the scrape's label 'kubernetes_namespace'"));
  CHECK_THAT(unplaced.missing_reason, Catch::Contains("metrics.namespaceLabel"));
}

TEST_CASE("over HTTP: an answer, an empty one, NaN and a server in trouble") {
  struct Case {
    const char* name;
    int status;
    const char* body;
    const char* want_reason;
  };
  const std::string sample_json = R"({"metric":{"namespace":"default","training_job":"vision"},"value":[1000000,"%"]})";
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
  const sluice::testing::ManualClock clock;
  PrometheusSource source([&](const std::string& expression, std::stop_token stop,
                              std::chrono::milliseconds timeout) { return client.query(expression, stop, timeout); },
                          config(), clock);
  const auto observation = source.observe({}).of(kAskedJob);
  CHECK(observation.measurement.has_value() == (*test.want_reason == '\0'));
  CHECK_THAT(observation.missing_reason, Catch::Contains(test.want_reason));
}

}  // namespace
}  // namespace sluice::observe
