#include "operator/config.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include <strings.h>

#include "src/base/yaml_reader.h"

namespace sluice::control {
namespace {

constexpr double kMostPrice = 1e9;
constexpr double kMostCores = 1e7;
constexpr double kMostBytesPerSecond = 1e15;

void read_seconds(YamlMap& map, std::string_view key, std::chrono::seconds& out, int least) {
  int seconds = static_cast<int>(out.count());
  map.integer(key, seconds, least, 3600);
  out = std::chrono::seconds(seconds);
}

// A whole percentage; `out` is the ratio.
void read_percent(YamlMap& map, std::string_view key, double& out, int least, int most) {
  int percent = -1;
  map.integer(key, percent, least, most);
  if (percent >= least) out = percent / 100.0;
}

void read_leader_election(YamlMap& map, LeaderElection& election) {
  map.boolean("enabled", election.enabled);
  map.text("namespace", election.lease_namespace);
  map.text("name", election.name);
  read_seconds(map, "leaseSeconds", election.lease, 3);
  read_seconds(map, "renewSeconds", election.renew, 2);
  read_seconds(map, "retrySeconds", election.retry, 1);
}

// The queries by the names that they have in the file.
std::vector<std::pair<const char*, std::string*>> named(Queries& queries) {
  return {{"samplesPerSecond", &queries.samples_per_second},
          {"computeShare", &queries.compute_share},
          {"dataWaitShare", &queries.data_wait_share},
          {"batchesInWindow", &queries.batches_in_window},
          {"queueDepth", &queries.queue_depth},
          {"queueCapacity", &queries.queue_capacity},
          {"workerSamplesPerSecond", &queries.worker_samples_per_second},
          {"workerBusyCores", &queries.worker_busy_cores},
          {"workersAtWork", &queries.workers_at_work},
          {"bytesPerSample", &queries.bytes_per_sample},
          {"readBytesPerSample", &queries.read_bytes_per_sample},
          {"blockedThreads", &queries.blocked_threads},
          {"workerMemoryBytes", &queries.worker_memory_bytes},
          {"remainingSamples", &queries.remaining_samples},
          {"ageSeconds", &queries.age_seconds},
          {"scrapesInWindow", &queries.scrapes_in_window},
          {"keptBytes", &queries.kept_bytes}};
}

void read_connection(YamlMap& map, PrometheusConnection& connection) {
  map.text("bearerTokenFile", connection.bearer_token_file);
  map.text("username", connection.username);
  map.text("passwordFile", connection.password_file);
  map.text("caFile", connection.ca_file);
  map.text("certificateFile", connection.certificate_file);
  map.text("keyFile", connection.key_file);
  map.text("serverName", connection.server_name);
  map.text("proxyUrl", connection.proxy_url);
  map.map("headers", [&](YamlMap& headers) {
    for (const std::string& name : headers.keys()) {
      if (strcasecmp(name.c_str(), "Authorization") == 0)
        headers.fail_at(name, "comes from bearerTokenFile, or from username and passwordFile: use those");
      headers.text(name, connection.headers[name]);
    }
  });
}

void read_metrics(YamlMap& map, MetricsSource& metrics) {
  map.text("url", metrics.url);
  map.integer("windowSeconds", metrics.window_seconds, 1, 3600);
  map.integer("staleSeconds", metrics.stale_seconds, 1, 3600);
  map.map("connection", [&](YamlMap& connection) { read_connection(connection, metrics.connection); });
  map.text("namespaceLabel", metrics.namespace_label);
  map.map("queries", [&](YamlMap& queries) {
    for (const auto& [name, query] : named(metrics.queries)) queries.text(name, *query);
  });
}

void read_nodes(YamlMap& map, NodeFacts& nodes) {
  map.text("priceLabel", nodes.price_label);
  map.numbers("prices", 0, kMostPrice, [&](const std::string& type, double price) { nodes.prices[type] = price; });
  map.text("networkLabel", nodes.network_label);
  map.number("networkGigabits", nodes.network_gigabits, 0, 1e9);
}

void read_bundle(YamlMap& map, BundleResources& bundle) {
  map.map("requests", [&](YamlMap& requests) {
    requests.text("cpu", bundle.cpu_request);
    requests.text("memory", bundle.memory_request);
  });
  map.map("limits", [&](YamlMap& limits) {
    limits.text("cpu", bundle.cpu_limit);
    limits.text("memory", bundle.memory_limit);
  });
}

// The bounds are those of the TrainingJob's schema.
void read_caps(YamlMap& map, NamespaceCaps& caps) {
  if (map.has("maxPriority")) map.integer("maxPriority", caps.priority.emplace(), -1'000'000, 1'000'000);
  if (map.has("maxWeight")) map.integer("maxWeight", caps.weight.emplace(), 1, 10000);
  if (map.has("maxWorkerCores")) map.number("maxWorkerCores", caps.worker_cores.emplace(), 0, kMostCores);
}

void read_storage(YamlMap& map, SharedStorage& storage) {
  map.number("bytesPerSecond", storage.bytes_per_second, 1, kMostBytesPerSecond);
  map.texts("claims", storage.claims);
  for (const std::string& claim : storage.claims)
    if (std::count(claim.begin(), claim.end(), '/') != 1) map.fail_at("claims", claim + " is not NAMESPACE/NAME");
}

void read_scheduler(YamlMap& map, Config& config) {
  std::string objective(to_string(config.scheduler.objective));
  map.text("objective", objective);
  const auto parsed = scheduler::parse_objective(objective);
  if (parsed.ok()) config.scheduler.objective = *parsed;
  if (!parsed.ok()) map.fail_at("objective", parsed.error().message());
  double budget = 0;
  map.number("budgetPerHour", budget, 0, kMostPrice);
  if (budget > 0) config.budgets.of_all = budget;
  map.numbers("namespaceBudgets", 0, kMostPrice,
              [&](const std::string& name, double most) { config.budgets.of_namespaces[name] = most; });
  map.map("namespaceCaps", [&](YamlMap& namespaces) {
    for (const std::string& name : namespaces.keys())
      namespaces.map(name, [&](YamlMap& caps) { read_caps(caps, config.namespace_caps[name]); });
  });
  map.map("storages", [&](YamlMap& storages) {
    for (const std::string& name : storages.keys())
      storages.map(name, [&](YamlMap& storage) { read_storage(storage, config.storages[name]); });
  });
  read_percent(map, "headroomPercent", config.scheduler.headroom, 100, 400);
  read_percent(map, "starvedPercent", config.scheduler.starved_above, 1, 50);
  map.integer("clusterCpuPercent", config.cluster_cpu_percent, 0, 100);
  map.integer("freeCpuPercent", config.free_cpu_percent, 0, 50);
}

void read_all(YamlMap& map, Config& config) {
  map.text("image", config.image);
  map.texts("architectures", config.architectures);
  map.text("imagePullPolicy", config.image_pull_policy);
  const auto policies = {"Always", "IfNotPresent", "Never"};
  if (std::find(policies.begin(), policies.end(), config.image_pull_policy) == policies.end())
    map.fail_at("imagePullPolicy", "must be one of Always, IfNotPresent, Never");
  map.texts("imagePullSecrets", config.image_pull_secrets);
  map.map("bundle", [&](YamlMap& bundle) { read_bundle(bundle, config.bundle); });
  map.map("workers", [&](YamlMap& workers) {
    workers.text("priorityClassName", config.worker_priority_class);
    workers.map("networkPolicy", [&](YamlMap& policy) { policy.boolean("enabled", config.guard_workers); });
  });
  map.texts("watchNamespaces", config.watch_namespaces);
  read_seconds(map, "decisionIntervalSeconds", config.decision_interval, 1);
  map.text("metricsAddress", config.metrics_address);
  map.text("probesAddress", config.probes_address);
  map.map("plan", [&](YamlMap& plan) {
    plan.text("address", config.plan.address);
    plan.text("reader", config.plan.reader);
  });
  map.text("kubeconfig", config.kubeconfig);
  map.map("leaderElection", [&](YamlMap& inner) { read_leader_election(inner, config.leader_election); });
  map.map("metrics", [&](YamlMap& inner) { read_metrics(inner, config.metrics); });
  map.map("feeder", [&](YamlMap& feeder) {
    feeder.map("resize", [&](YamlMap& resize) { resize.boolean("enabled", config.resize_feeders); });
  });
  map.map("cache", [&](YamlMap& cache) {
    cache.text("address", config.node_cache.address);
    cache.text("secret", config.node_cache.secret);
  });
  map.text("learntConfigMap", config.learnt_config_map);
  map.map("nodes", [&](YamlMap& inner) { read_nodes(inner, config.nodes); });
  map.map("scheduler", [&](YamlMap& inner) { read_scheduler(inner, config); });
  map.finish();
}

Result<void> check_connection(const MetricsSource& metrics) {
  const PrometheusConnection& connection = metrics.connection;
  const bool has_password = !connection.password_file.empty();
  if (connection.username.empty() == has_password)
    return invalid_argument("metrics.connection: username and passwordFile are needed together");
  if (has_password && !connection.bearer_token_file.empty())
    return invalid_argument("metrics.connection: set bearerTokenFile or username, not both: a request carries one");
  if (connection.certificate_file.empty() != connection.key_file.empty())
    return invalid_argument("metrics.connection: certificateFile and keyFile are needed together");
  const bool has_tls = !connection.ca_file.empty() || !connection.certificate_file.empty();
  if (has_tls && !metrics.url.starts_with("https://"))
    return invalid_argument("metrics.connection: caFile and certificateFile need an https:// URL in metrics.url");
  if (!connection.proxy_url.empty() && !connection.proxy_url.starts_with("http://"))
    return invalid_argument("metrics.connection.proxyUrl must be http://HOST:PORT; other proxies are not supported");
  if (metrics.namespace_label.empty())
    return invalid_argument("metrics.namespaceLabel is empty: name the label that scrapes give to a pod's namespace");
  return {};
}

Result<void> check(Config& config) {
  if (config.architectures.empty())
    return invalid_argument("architectures is empty: name those of the Sluice image, as amd64");
  if (config.image.empty()) return invalid_argument("image is missing: name the Sluice image that holds the bundle");
  const LeaderElection& election = config.leader_election;
  if (election.enabled && election.lease_namespace.empty())
    return invalid_argument(
        "leaderElection.namespace is missing: name the namespace of the Lease, or set enabled: false");
  if (election.lease <= election.renew || election.renew * 10 <= election.retry * 12)
    return invalid_argument("leaderElection: leaseSeconds must exceed renewSeconds, and renewSeconds 1.2 retrySeconds");
  if (config.node_cache.address.empty() != config.node_cache.secret.empty())
    return invalid_argument("cache: address and secret are needed together");
  if (!config.node_cache.secret.empty() && election.lease_namespace.empty())
    return invalid_argument("cache.secret: leaderElection.namespace names its namespace, and is missing");
  if (config.metrics.url.empty()) return {};
  SLUICE_TRY_VOID(check_connection(config.metrics));
  const bool has_caches = !config.node_cache.address.empty();
  for (const auto& [name, query] : named(config.metrics.queries))
    if (query->empty() && (has_caches || query != &config.metrics.queries.kept_bytes))
      return invalid_argument(std::string("metrics.queries.") + name + " is missing");
  return {};
}

}  // namespace

Result<Config> parse_config(const std::string& yaml, const std::string& file_name) {
  Config config;
  SLUICE_TRY(const std::unique_ptr<YamlFile> file, YamlFile::parse(yaml, file_name));
  YamlMap root = file->root();
  read_all(root, config);
  if (file->error()) return *file->error();
  if (const auto checked = check(config); !checked.ok()) return checked.error().with_context(file_name);
  if (config.node_cache.address.empty()) config.metrics.queries.kept_bytes.clear();
  config.metrics.own_namespace = config.leader_election.lease_namespace;
  // The scheduler alone decides what is stale and what is too short; it is told in the configuration's terms.
  config.scheduler.max_age_seconds = config.metrics.stale_seconds;
  if (config.metrics.window_seconds < config.scheduler.min_window_seconds)
    config.scheduler.min_window_seconds = config.metrics.window_seconds;
  return config;
}

Result<Config> read_config(const std::string& path) {
  std::ifstream file(path);
  if (!file) return not_found("configuration " + path + " cannot be read");
  std::stringstream content;
  content << file.rdbuf();
  return parse_config(content.str(), path);
}

}  // namespace sluice::control
