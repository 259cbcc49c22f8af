#include "operator/config.h"

#include "src/base/testing/catch.h"

namespace sluice::control {
namespace {

// As the chart renders it.
const std::string kFull = R"(
image: "sluice:0.1.0"
architectures: [arm64, amd64]
imagePullPolicy: Never
imagePullSecrets: [mirror]
bundle: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 256Mi}}
workers: {priorityClassName: sluice-workers, networkPolicy: {enabled: false}}
watchNamespaces: ["a", "b"]
decisionIntervalSeconds: 5
metricsAddress: 127.0.0.1:9080
probesAddress: 127.0.0.1:9081
plan: {address: "127.0.0.1:9082", reader: "system:serviceaccount:a:b"}
kubeconfig: /tmp/kubeconfig
leaderElection: {enabled: true, namespace: sluice-system, name: sluice-operator, leaseSeconds: 15, renewSeconds: 10, retrySeconds: 2}
metrics:
  url: https://prometheus:9090/prefix
  windowSeconds: 8
  staleSeconds: 60
  namespaceLabel: kubernetes_namespace
  connection: {bearerTokenFile: /run/token, caFile: /run/ca.crt, certificateFile: /run/tls.crt, keyFile: /run/tls.key,
               serverName: prometheus.example, proxyUrl: "http://proxy.example:3128", headers: {X-Scope-OrgID: team-a}}
  queries: {samplesPerSecond: "a[$window]", computeShare: b, dataWaitShare: c, batchesInWindow: d, queueDepth: e,
            queueCapacity: f, workerSamplesPerSecond: g, workerBusyCores: h, workersAtWork: i, bytesPerSample: k,
            readBytesPerSample: p, blockedThreads: l, workerMemoryBytes: n, remainingSamples: m, ageSeconds: j, scrapesInWindow: o,
            keptBytes: q}
cache: {address: "sluice-cache.sluice-system.svc:7473", secret: sluice-cache-tls}
learntConfigMap: sluice-learnt
feeder: {resize: {enabled: false}}
nodes: {priceLabel: example.dev/price, prices: {m5.large: 0.096, big: 3}, networkLabel: example.dev/gbit, networkGigabits: 10}
scheduler: {objective: fair, budgetPerHour: 2.5, namespaceBudgets: {team-a: 1.5, team-b: 0},
            namespaceCaps: {team-a: {maxPriority: -5, maxWeight: 100, maxWorkerCores: 12.5}, team-b: {}}, storages: {nas: {bytesPerSecond: 7.5e8, claims: [team-a/photos]}}, headroomPercent: 130, starvedPercent: 7, clusterCpuPercent: 80, freeCpuPercent: 9}
)";

TEST_CASE("the chart's configuration is read") {
  const auto config = parse_config(kFull);
  REQUIRE(config.ok());
  CHECK(config->image == "sluice:0.1.0");
  CHECK(config->image_pull_policy == "Never");
  CHECK(config->watch_namespaces == std::vector<std::string>{"a", "b"});
  CHECK(config->decision_interval == std::chrono::seconds(5));
  CHECK(config->metrics_address == "127.0.0.1:9080");
  CHECK(config->probes_address == "127.0.0.1:9081");
  CHECK(config->plan.address == "127.0.0.1:9082");
  CHECK(config->plan.reader == "system:serviceaccount:a:b");
  CHECK(config->kubeconfig == "/tmp/kubeconfig");
  CHECK(config->leader_election.lease_namespace == "sluice-system");
  CHECK(config->metrics.queries.samples_per_second == "a[$window]");
  CHECK(config->metrics.queries.age_seconds == "j");
  CHECK(config->metrics.queries.blocked_threads == "l");
  CHECK(config->metrics.queries.read_bytes_per_sample == "p");
  CHECK(config->metrics.queries.remaining_samples == "m");
  CHECK(config->metrics.queries.worker_memory_bytes == "n");
  CHECK(config->metrics.namespace_label == "kubernetes_namespace");
  const PrometheusConnection& connection = config->metrics.connection;
  CHECK(connection.bearer_token_file == "/run/token");
  CHECK(connection.ca_file == "/run/ca.crt");
  CHECK(connection.certificate_file == "/run/tls.crt");
  CHECK(connection.key_file == "/run/tls.key");
  CHECK(connection.server_name == "prometheus.example");
  CHECK(connection.proxy_url == "http://proxy.example:3128");
  CHECK(connection.headers == std::map<std::string, std::string>{{"X-Scope-OrgID", "team-a"}});
  CHECK(config->scheduler.headroom == Approx(1.3));
  CHECK(config->scheduler.starved_above == Approx(0.07));
  CHECK(config->cluster_cpu_percent == 80);
  CHECK(config->free_cpu_percent == 9);
  CHECK(config->worker_priority_class == "sluice-workers");
  CHECK(config->scheduler.objective == scheduler::Objective::kFair);
  CHECK_FALSE(config->resize_feeders);
  CHECK_FALSE(config->guard_workers);
  CHECK(config->node_cache.address == "sluice-cache.sluice-system.svc:7473");
  CHECK(config->node_cache.secret == "sluice-cache-tls");
  CHECK(config->metrics.queries.kept_bytes == "q");
  CHECK(config->metrics.own_namespace == "sluice-system");
  CHECK(config->nodes.price_label == "example.dev/price");
  CHECK(config->nodes.prices == std::map<std::string, double>{{"m5.large", 0.096}, {"big", 3}});
  CHECK(config->nodes.network_label == "example.dev/gbit");
  CHECK(config->nodes.network_gigabits == 10);
  CHECK(config->budgets.of_all == 2.5);
  CHECK(config->budgets.of_namespaces == std::map<std::string, double>{{"team-a", 1.5}, {"team-b", 0}});
  const NamespaceCaps& caps = config->namespace_caps.at("team-a");
  CHECK(caps.priority == -5);
  CHECK(caps.weight == 100);
  CHECK(caps.worker_cores == 12.5);
  CHECK_FALSE(config->namespace_caps.at("team-b").priority);
  CHECK_FALSE(config->namespace_caps.at("team-b").worker_cores);
  REQUIRE(config->storages.contains("nas"));
  CHECK(config->storages.at("nas").bytes_per_second == 7.5e8);
  CHECK(config->storages.at("nas").claims == std::vector<std::string>{"team-a/photos"});
  CHECK(config->image_pull_secrets == std::vector<std::string>{"mirror"});
  CHECK(config->bundle.cpu_request == "100m");
  CHECK(config->bundle.memory_request == "64Mi");
  CHECK(config->bundle.cpu_limit == "200m");
  CHECK(config->bundle.memory_limit == "256Mi");
  CHECK(config->learnt_config_map == "sluice-learnt");
}

TEST_CASE("what caches have kept is asked only where there are caches") {
  const std::string full = kFull;
  const auto without = [&](const std::string& part) {
    std::string text = full;
    REQUIRE(text.find(part) != std::string::npos);
    return parse_config(text.erase(text.find(part), part.size()));
  };
  const std::string caches = R"(cache: {address: "sluice-cache.sluice-system.svc:7473", secret: sluice-cache-tls})";
  const auto no_caches = without(caches), no_query = without(",\n            keptBytes: q");
  REQUIRE(no_caches.ok());
  CHECK(no_caches->metrics.queries.kept_bytes.empty());
  REQUIRE_FALSE(no_query.ok());
  CHECK(no_query.error().message().find("metrics.queries.keptBytes is missing") != std::string::npos);
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
      Case{"{}", "config.yaml: image is missing"}, Case{"", "not a YAML mapping"},
      Case{"image: x", "leaderElection.namespace is missing"},
      Case{"image: x\nleaderElection: {enabled: maybe}",
           "config.yaml:2: leaderElection.enabled: neither true nor false"},
      Case{"image: x\nimage_pull_policy: Never",
           "config.yaml:2: image_pull_policy: there is no such field; known here: architectures, bundle, cache"},
      Case{"image: x\nimagePullPolicy: Sometimes", "imagePullPolicy: must be one of Always, IfNotPresent, Never"},
      Case{"image: x\ndecisionIntervalSeconds: 0", "decisionIntervalSeconds: 0 is not within 1 .. 3600"},
      Case{"image: x\ndecisionIntervalSeconds: 1.5", "decisionIntervalSeconds: not a whole number"},
      Case{"image: x\nwatchNamespaces: a", "watchNamespaces: not a list of texts"},
      Case{"image: x\nmetrics: {queries: {speed: y}}", "metrics.queries.speed: there is no such field"},
      Case{"image: x\nscheduler: {namespaceCaps: {a: {maxWeight: 0}}}",
           "scheduler.namespaceCaps.a.maxWeight: 0 is not within"},
      Case{"image: x\nscheduler: {storages: {nas: {bytesPerSecond: 0}}}",
           "scheduler.storages.nas.bytesPerSecond: 0 is not within"},
      Case{"image: x\nscheduler: {storages: {nas: {bytesPerSecond: 1, claims: [photos]}}}",
           "photos is not NAMESPACE/NAME"},
      Case{"image: x\nscheduler: {namespaceCaps: {a: {max: 1}}}",
           "scheduler.namespaceCaps.a.max: there is no such field"},
      Case{"image: x\nmetrics: [1]", "metrics: not a mapping"}, Case{"image: [x]", "image: not a text"},
      Case{"image: x\nleaderElection: {enabled: false}\nmetrics: {url: \"http://p\"}",
           "metrics.queries.samplesPerSecond is missing"},
      Case{"image: x\nleaderElection: {namespace: a, leaseSeconds: 10, renewSeconds: 10}",
           "leaseSeconds must exceed renewSeconds"},
      Case{"image: x\nleaderElection: {namespace: a}\ncache: {address: \"a:1\"}",
           "cache: address and secret are needed together"},
      Case{"image: x\nleaderElection: {enabled: false}\ncache: {address: \"a:1\", secret: b}",
           "cache.secret: leaderElection.namespace names its namespace"},
      Case{"image: x\nscheduler: {headroomPercent: 50}", "scheduler.headroomPercent: 50 is not within 100 .. 400"},
      Case{"image: x\nscheduler: {objective: best}", "scheduler.objective: "},
      Case{"image: x\nscheduler: {objective: best}", "throughput"},
      Case{"image: x\nscheduler: {budgetPerHour: -1}", "scheduler.budgetPerHour: -1 is not within 0"},
      Case{"image: x\nscheduler: {namespaceBudgets: {a: -1}}", "scheduler.namespaceBudgets.a: -1 is not within 0"},
      Case{"image: x\nnodes: {prices: {m5: cheap}}", "nodes.prices.m5: not a number"},
      Case{"image: x\nnodes: {prices: 3}", "nodes.prices: not a mapping"},
      Case{"image: x\nscheduler: {objective: [fair]}", "scheduler.objective: "}, Case{"{image: x", "config.yaml:1: "});
  INFO(test.yaml);
  const auto config = parse_config(test.yaml);
  REQUIRE_FALSE(config.ok());
  CHECK(config.error().code() == ErrorCode::kInvalidArgument);
  CHECK_THAT(config.error().message(), Catch::Contains(test.want));
}

TEST_CASE("a connection to Prometheus that cannot work is refused with the way out") {
  struct Case {
    const char* url;
    const char* connection;
    const char* want;
  };
  const Case test = GENERATE(
      Case{"https://p", "{username: u}", "username and passwordFile are needed together"},
      Case{"https://p", "{passwordFile: f}", "username and passwordFile are needed together"},
      Case{"https://p", "{username: u, passwordFile: f, bearerTokenFile: t}", "bearerTokenFile or username, not both"},
      Case{"https://p", "{certificateFile: c}", "certificateFile and keyFile are needed together"},
      Case{"http://p", "{caFile: c}", "need an https:// URL in metrics.url"},
      Case{"http://p", "{proxyUrl: \"socks5://proxy:1080\"}", "metrics.connection.proxyUrl must be http://HOST:PORT"},
      Case{"http://p", "{headers: {authorization: secret}}", "use those"},
      Case{"http://p", "{headers: {X-Scope-OrgID: [a]}}", "headers.X-Scope-OrgID: not a text"},
      Case{"http://p", "{tokenFile: t}", "metrics.connection.tokenFile: there is no such field"});
  INFO(test.connection);
  const auto config = parse_config(std::string("image: x\nleaderElection: {enabled: false}\nmetrics:\n  url: ") +
                                   test.url + "\n  connection: " + test.connection + "\n");
  REQUIRE_FALSE(config.ok());
  CHECK_THAT(config.error().message(), Catch::Contains("metrics.connection"));
  CHECK_THAT(config.error().message(), Catch::Contains(test.want));
}

TEST_CASE("a file that is not there is named") {
  const auto config = read_config("/nowhere/config.yaml");
  REQUIRE_FALSE(config.ok());
  CHECK_THAT(config.error().message(), Catch::Contains("/nowhere/config.yaml"));
}

}  // namespace
}  // namespace sluice::control
