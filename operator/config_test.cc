#include "operator/config.h"

#include "src/base/testing/catch.h"

namespace sluice::control {
namespace {

// As the chart renders it.
const std::string kFull = R"(
image: "sluice:0.1.0"
imagePullPolicy: Never
watchNamespaces: ["a", "b"]
decisionIntervalSeconds: 5
bindAddress: 127.0.0.1:8081
kubeconfig: /tmp/kubeconfig
leaderElection: {enabled: true, namespace: sluice-system, name: sluice-operator, leaseSeconds: 15, renewSeconds: 10, retrySeconds: 2}
metrics:
  url: http://prometheus:9090
  windowSeconds: 8
  staleSeconds: 60
  queries: {samplesPerSecond: "a[$window]", computeShare: b, dataWaitShare: c, batchesInWindow: d, queueDepth: e,
            queueCapacity: f, workerSamplesPerSecond: g, workerBusyCores: h, workersAtWork: i, ageSeconds: j}
scheduler: {headroomPercent: 130, starvedPercent: 7, clusterCpuPercent: 80}
)";

TEST_CASE("the chart's configuration is read") {
  const auto config = parse_config(kFull);
  REQUIRE(config.ok());
  CHECK(config->image == "sluice:0.1.0");
  CHECK(config->image_pull_policy == "Never");
  CHECK(config->watch_namespaces == std::vector<std::string>{"a", "b"});
  CHECK(config->decision_interval == std::chrono::seconds(5));
  CHECK(config->bind_address == "127.0.0.1:8081");
  CHECK(config->kubeconfig == "/tmp/kubeconfig");
  CHECK(config->leader_election.lease_namespace == "sluice-system");
  CHECK(config->metrics.queries.samples_per_second == "a[$window]");
  CHECK(config->metrics.queries.age_seconds == "j");
  CHECK(config->scheduler.headroom == Approx(1.3));
  CHECK(config->scheduler.starved_above == Approx(0.07));
  CHECK(config->cluster_cpu_percent == 80);
}

TEST_CASE("the scheduler is told what is stale and how short a window may be") {
  const auto config = parse_config(kFull);
  REQUIRE(config.ok());
  CHECK(config->scheduler.max_age_seconds == 60);
  CHECK(config->scheduler.min_window_seconds == 8);
}

TEST_CASE("an image is all that a cluster without Prometheus needs") {
  const auto config = parse_config("image: sluice:1\nleaderElection: {enabled: false}\n");
  REQUIRE(config.ok());
  CHECK(config->metrics.url.empty());
  CHECK(config->watch_namespaces.empty());
}

TEST_CASE("a mistake is named with its key and the way out") {
  struct Case {
    const char* yaml;
    const char* want;
  };
  const Case test = GENERATE(
      Case{"", "image is missing"}, Case{"image: x", "leaderElection.namespace is missing"},
      Case{"image: x\nleaderElection: {enabled: maybe}", "leaderElection.enabled must be true or false"},
      Case{"image: x\nimage_pull_policy: Never", "image_pull_policy is not known; known here: bindAddress"},
      Case{"image: x\nimagePullPolicy: Sometimes", "imagePullPolicy must be one of Always, IfNotPresent, Never"},
      Case{"image: x\ndecisionIntervalSeconds: 0", "decisionIntervalSeconds must be a whole number from 1 to 3600"},
      Case{"image: x\ndecisionIntervalSeconds: 1.5", "decisionIntervalSeconds must be a whole number"},
      Case{"image: x\nwatchNamespaces: a", "watchNamespaces must be a list"},
      Case{"image: x\nmetrics: {queries: {speed: y}}", "metrics.queries.speed is not known"},
      Case{"image: x\nmetrics: [1]", "metrics must be a mapping"}, Case{"image: [x]", "image must be a text"},
      Case{"image: x\nleaderElection: {enabled: false}\nmetrics: {url: \"http://p\"}",
           "metrics.queries.samplesPerSecond is missing"},
      Case{"image: x\nleaderElection: {namespace: a, leaseSeconds: 10, renewSeconds: 10}",
           "leaseSeconds must exceed renewSeconds"},
      Case{"image: x\nscheduler: {headroomPercent: 50}", "scheduler.headroomPercent must be a whole number from 100"},
      Case{"{image: x", "is no YAML"});
  INFO(test.yaml);
  const auto config = parse_config(test.yaml);
  REQUIRE_FALSE(config.ok());
  CHECK(config.error().code() == ErrorCode::kInvalidArgument);
  CHECK_THAT(config.error().message(), Catch::Contains(test.want));
}

TEST_CASE("a file that is not there is named") {
  const auto config = read_config("/nowhere/config.yaml");
  REQUIRE_FALSE(config.ok());
  CHECK_THAT(config.error().message(), Catch::Contains("/nowhere/config.yaml"));
}

}  // namespace
}  // namespace sluice::control
