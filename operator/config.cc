#include "operator/config.h"

#include <yaml-cpp/yaml.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>

namespace sluice::control {
namespace {

using Reader = std::function<Result<void>(const YAML::Node& node, const std::string& key)>;
using Readers = std::map<std::string, Reader, std::less<>>;

std::string path_of(const std::string& parent, const std::string& key) {
  return parent.empty() ? key : parent + "." + key;
}

// Every key of a mapping goes to its reader; a key without one is an error.
Result<void> read_mapping(const YAML::Node& node, const std::string& path, const Readers& readers) {
  if (node.IsNull()) return {};
  if (!node.IsMap()) return invalid_argument((path.empty() ? "the file" : path) + " must be a mapping");
  for (const auto& entry : node) {
    const std::string key = entry.first.Scalar();
    const auto reader = readers.find(key);
    if (reader == readers.end()) {
      std::string known;
      for (const auto& [name, unused] : readers) known += (known.empty() ? "" : ", ") + name;
      return invalid_argument(path_of(path, key) + " is not known; known here: " + known);
    }
    SLUICE_TRY_VOID(reader->second(entry.second, path_of(path, key)));
  }
  return {};
}

Reader text(std::string& target) {
  return [&target](const YAML::Node& node, const std::string& key) -> Result<void> {
    if (!node.IsScalar()) return invalid_argument(key + " must be a text");
    target = node.Scalar();
    return {};
  };
}

Reader one_of(std::string& target, std::vector<std::string> allowed) {
  return [&target, allowed = std::move(allowed)](const YAML::Node& node, const std::string& key) -> Result<void> {
    std::string choices;
    for (const std::string& choice : allowed) {
      if (node.IsScalar() && node.Scalar() == choice) {
        target = choice;
        return {};
      }
      choices += (choices.empty() ? "" : ", ") + choice;
    }
    return invalid_argument(key + " must be one of " + choices);
  };
}

// `store` receives a whole number within [low, high].
Reader integer(std::function<void(int)> store, int low, int high) {
  return [store = std::move(store), low, high](const YAML::Node& node, const std::string& key) -> Result<void> {
    int value = 0;
    if (!node.IsScalar() || !YAML::convert<int>::decode(node, value) || value < low || value > high)
      return invalid_argument(key + " must be a whole number from " + std::to_string(low) + " to " +
                              std::to_string(high));
    store(value);
    return {};
  };
}

Reader seconds(std::chrono::seconds& target, int low, int high) {
  return integer([&target](int value) { target = std::chrono::seconds(value); }, low, high);
}

Reader boolean(bool& target) {
  return [&target](const YAML::Node& node, const std::string& key) -> Result<void> {
    if (!node.IsScalar() || !YAML::convert<bool>::decode(node, target))
      return invalid_argument(key + " must be true or false");
    return {};
  };
}

Reader texts(std::vector<std::string>& target) {
  return [&target](const YAML::Node& node, const std::string& key) -> Result<void> {
    if (!node.IsSequence()) return invalid_argument(key + " must be a list of texts");
    target.clear();
    for (const auto& entry : node) {
      if (!entry.IsScalar()) return invalid_argument(key + " must be a list of texts");
      target.push_back(entry.Scalar());
    }
    return {};
  };
}

Reader mapping(Readers readers) {
  return [readers = std::move(readers)](const YAML::Node& node, const std::string& key) {
    return read_mapping(node, key, readers);
  };
}

Readers query_readers(Queries& queries) {
  return {{"samplesPerSecond", text(queries.samples_per_second)},
          {"computeShare", text(queries.compute_share)},
          {"dataWaitShare", text(queries.data_wait_share)},
          {"batchesInWindow", text(queries.batches_in_window)},
          {"queueDepth", text(queries.queue_depth)},
          {"queueCapacity", text(queries.queue_capacity)},
          {"workerSamplesPerSecond", text(queries.worker_samples_per_second)},
          {"workerBusyCores", text(queries.worker_busy_cores)},
          {"workersAtWork", text(queries.workers_at_work)},
          {"ageSeconds", text(queries.age_seconds)}};
}

Readers leader_election_readers(LeaderElection& election) {
  return {{"enabled", boolean(election.enabled)},
          {"namespace", text(election.lease_namespace)},
          {"name", text(election.name)},
          {"leaseSeconds", seconds(election.lease, 3, 3600)},
          {"renewSeconds", seconds(election.renew, 2, 3600)},
          {"retrySeconds", seconds(election.retry, 1, 3600)}};
}

Readers scheduler_readers(Config& config) {
  return {{"headroomPercent", integer([&](int value) { config.scheduler.headroom = value / 100.0; }, 100, 400)},
          {"starvedPercent", integer([&](int value) { config.scheduler.starved_above = value / 100.0; }, 1, 50)},
          {"clusterCpuPercent", integer([&](int value) { config.cluster_cpu_percent = value; }, 0, 100)}};
}

Readers readers_of(Config& config) {
  MetricsSource& metrics = config.metrics;
  return {{"image", text(config.image)},
          {"imagePullPolicy", one_of(config.image_pull_policy, {"Always", "IfNotPresent", "Never"})},
          {"watchNamespaces", texts(config.watch_namespaces)},
          {"decisionIntervalSeconds", seconds(config.decision_interval, 1, 3600)},
          {"bindAddress", text(config.bind_address)},
          {"kubeconfig", text(config.kubeconfig)},
          {"leaderElection", mapping(leader_election_readers(config.leader_election))},
          {"metrics", mapping({{"url", text(metrics.url)},
                               {"windowSeconds", integer([&](int value) { metrics.window_seconds = value; }, 1, 3600)},
                               {"staleSeconds", integer([&](int value) { metrics.stale_seconds = value; }, 1, 3600)},
                               {"queries", mapping(query_readers(metrics.queries))}})},
          {"scheduler", mapping(scheduler_readers(config))}};
}

Result<void> check(const Config& config) {
  if (config.image.empty()) return invalid_argument("image is missing: name the Sluice image that holds the bundle");
  const LeaderElection& election = config.leader_election;
  if (election.enabled && election.lease_namespace.empty())
    return invalid_argument(
        "leaderElection.namespace is missing: name the namespace of the Lease, or set enabled: false");
  if (election.lease <= election.renew || election.renew * 10 <= election.retry * 12)
    return invalid_argument("leaderElection: leaseSeconds must exceed renewSeconds, and renewSeconds 1.2 retrySeconds");
  if (config.metrics.url.empty()) return {};
  const Queries& queries = config.metrics.queries;
  const std::pair<const char*, const std::string&> needed[] = {
      {"samplesPerSecond", queries.samples_per_second},
      {"computeShare", queries.compute_share},
      {"dataWaitShare", queries.data_wait_share},
      {"batchesInWindow", queries.batches_in_window},
      {"queueDepth", queries.queue_depth},
      {"queueCapacity", queries.queue_capacity},
      {"workerSamplesPerSecond", queries.worker_samples_per_second},
      {"workerBusyCores", queries.worker_busy_cores},
      {"workersAtWork", queries.workers_at_work},
      {"ageSeconds", queries.age_seconds}};
  for (const auto& [name, query] : needed)
    if (query.empty()) return invalid_argument(std::string("metrics.queries.") + name + " is missing");
  return {};
}

}  // namespace

Result<Config> parse_config(const std::string& yaml) {
  Config config;
  try {
    const YAML::Node root = YAML::Load(yaml);
    SLUICE_TRY_VOID(read_mapping(root, "", readers_of(config)));
  } catch (const YAML::Exception& exception) {
    return invalid_argument(std::string("the configuration is no YAML: ") + exception.what());
  }
  SLUICE_TRY_VOID(check(config));
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
  auto config = parse_config(content.str());
  if (!config.ok()) return config.error().with_context(path);
  return config;
}

}  // namespace sluice::control
