#include "scheduler/simulator/input/scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "scheduler/simulator/input/text_table.h"
#include "src/base/yaml_reader.h"

namespace sluice::simulator {
namespace {

constexpr double kMany = 1e9;

void read_speed(YamlMap& map, Physics& p) {
  map.number("softmin_exponent", p.softmin_exponent, 1, 1000);
  map.number("remote_efficiency", p.remote_efficiency, 0.01, 10);
  map.number("local_exponent", p.local_exponent, 0.1, 1);
  map.number("local_flatter_above_cores", p.local_flatter_above_cores, 0, kMany);
  map.number("local_flatter_exponent", p.local_flatter_exponent, 0, 1);
  map.number("interference", p.interference, 0, 0.9);
  map.boolean("slowest_rank", p.slowest_rank);
  map.number("local_appetite", p.local_appetite, 0.1, 100);
  int millicores = static_cast<int>(p.min_local_millicores);
  map.integer("min_local_millicores", millicores, 1, 1000000);
  p.min_local_millicores = millicores;
}

void read_workers(YamlMap& map, Physics& p) {
  map.number("worker_startup_seconds", p.worker_startup_seconds, 0, kMany);
  map.number("worker_limit_factor", p.worker_limit_factor, 1, 1000);
  map.number("worker_warmup_seconds", p.worker_warmup_seconds, 0, kMany);
  map.number("worker_warmup_speed", p.worker_warmup_speed, 0, 1);
  map.number("worker_drain_seconds", p.worker_drain_seconds, 0, kMany);
  map.number("trainer_startup_seconds", p.trainer_startup_seconds, 0, kMany);
  int millicores = static_cast<int>(p.worker_millicores);
  map.integer("worker_millicores", millicores, 1, 1000000);
  p.worker_millicores = millicores;
  map.integer("max_workers_per_job", p.max_workers_per_job, 0, 1 << 20);
}

void read_metrics(YamlMap& map, Physics& p) {
  map.number("decision_period_seconds", p.decision_period_seconds, 0.1, kMany);
  map.number("decision_period_most_seconds", p.decision_period_most_seconds, 0, kMany);
  map.number("admission_period_seconds", p.admission_period_seconds, 0, kMany);
  map.number("metrics_age_seconds", p.metrics_age_seconds, 0, kMany);
  map.number("metrics_window_seconds", p.metrics_window_seconds, 0.1, kMany);
  map.number("metrics_window_batches", p.metrics_window_batches, 0, kMany);
  map.number("metrics_window_most_seconds", p.metrics_window_most_seconds, 1, kMany);
  map.number("metrics_noise", p.metrics_noise, 0, 5);
  map.number("busy_cpu_error", p.busy_cpu_error, 0, 5);
  map.number("batches_per_second_per_gpu", p.batches_per_second_per_gpu, 1e-3, kMany);
  map.boolean("remaining_time_known", p.remaining_time_known);
}

void read_weather(YamlMap& map, Physics& p) {
  map.number("storage_gbps", p.storage_gbps, 0, kMany);
  map.number("storage_share_of_network", p.storage_share_of_network, 0, 100);
  map.number("cached_after_first_epoch", p.cached_after_first_epoch, 0, 1);
  map.number("epoch_seconds", p.epoch_seconds, 0, kMany);
  if (p.epoch_seconds > 0 && p.epoch_seconds < 1) map.fail_at("epoch_seconds", "neither 0 nor at least a second");
  map.number("evaluation_seconds", p.evaluation_seconds, 0, kMany);
  map.number("cost_change", p.cost_change, 0, 5);
  map.number("cost_change_seconds", p.cost_change_seconds, 1, kMany);
  map.number("node_failure_hours", p.node_failure_hours, 0, kMany);
  map.number("node_repair_seconds", p.node_repair_seconds, 1, kMany);
  map.number("spot_reclaim_hours", p.spot_reclaim_hours, 0, kMany);
  map.number("spot_return_seconds", p.spot_return_seconds, 1, kMany);
  map.number("checkpoint_seconds", p.checkpoint_seconds, 1, kMany);
  map.number("gpu_price_per_hour", p.gpu_price_per_hour, 0, kMany);
  map.number("core_price_per_hour", p.core_price_per_hour, 0, kMany);
  map.boolean("gpu_price_includes_host", p.gpu_price_includes_host);
}

void read_storage(YamlMap& map, Cluster& cluster) {
  map.each("data_sets", [&](YamlMap& inner) {
    DataSet data;
    inner.require("name");
    inner.require("gigabytes");
    inner.text("name", data.name);
    inner.number("gigabytes", data.gigabytes, 1e-3, kMany);
    if (cluster.data_set(data.name) >= 0) inner.fail_at("name", "there are two data sets \"" + data.name + "\"");
    cluster.data_sets.push_back(std::move(data));
  });
  map.map("cache", [&](YamlMap& inner) {
    std::string rule(name_of(cluster.cache.rule));
    inner.require("gigabytes");
    inner.number("gigabytes", cluster.cache.gigabytes, 0, kMany);
    inner.text("rule", rule);
    if (const auto known = cache_rule(rule); known.ok())
      cluster.cache.rule = *known;
    else
      inner.fail_at("rule", known.error().message());
  });
}

void read_cluster(YamlMap& map, Cluster& cluster) {
  map.require("nodes");
  map.each("nodes", [&](YamlMap& node) {
    NodeGroup group;
    node.require("name");
    node.require("cores");
    node.text("name", group.name);
    node.integer("count", group.count, 1, 1000000);
    node.integer("gpus", group.gpus, 0, 1024);
    node.number("cores", group.cores, 0.1, 100000);
    node.number("network_gbps", group.network_gbps, 0, 100000);
    node.boolean("spot", group.spot);
    if (std::any_of(cluster.groups.begin(), cluster.groups.end(),
                    [&](const NodeGroup& other) { return other.name == group.name; }))
      node.fail_at("name", "there are two groups of nodes \"" + group.name + "\"");
    cluster.groups.push_back(std::move(group));
  });
  if (cluster.gpus() == 0) map.fail("no node has a GPU");
  read_storage(map, cluster);
  map.map("physics", [&](YamlMap& physics) {
    read_speed(physics, cluster.physics);
    read_workers(physics, cluster.physics);
    read_metrics(physics, cluster.physics);
    read_weather(physics, cluster.physics);
  });
}

template <typename K>
bool nothing_to_draw(const std::map<K, double>& weights) {
  return std::none_of(weights.begin(), weights.end(), [](const auto& entry) { return entry.second > 0; });
}

void read_recipe(YamlMap& map, const Cluster& cluster, Recipe& recipe) {
  map.integer("jobs", recipe.jobs, 1, 10000000);
  map.number("load", recipe.load, 0.01, 1000);
  map.number("burstiness", recipe.burstiness, 1, 20);
  map.number("duration_divisor", recipe.duration_divisor, 1e-3, kMany);
  map.number("knee_factor", recipe.knee_factor, 0.01, 100);
  map.number("knee_spread", recipe.knee_spread, 0, 2);
  if (map.has("gpus")) recipe.gpus.clear();
  map.numbers("gpus", 0, kMany, [&](const std::string& name, double weight) {
    const double gpus = number_of(name).value_or(0);
    if (gpus >= 1 && gpus <= 65536 && gpus == std::floor(gpus))
      recipe.gpus[static_cast<int>(gpus)] = weight;
    else
      map.fail_at("gpus", "\"" + name + "\" is no number of GPUs");
  });
  map.require("models");
  map.numbers("models", 0, kMany, [&](const std::string& name, double weight) { recipe.models[name] = weight; });
  if (nothing_to_draw(recipe.gpus)) map.fail_at("gpus", "no weight above 0");
  if (nothing_to_draw(recipe.models)) map.fail_at("models", "no weight above 0");
  for (const auto& [gpus, weight] : recipe.gpus)
    if (weight > 0 && gpus > cluster.gpus()) map.fail_at("gpus", larger_than_cluster("a job", gpus, cluster.gpus()));
}

void read_startup(YamlMap& map, JobSpec& job) {
  if (!map.has("startup_seconds")) return;
  double seconds = 0;
  map.number("startup_seconds", seconds, 0, kMany);
  job.startup_seconds = seconds;
}

void read_learnt(YamlMap& map, JobSpec& job) {
  if (map.has("learnt_workers")) map.require("learnt_knee_cores_per_gpu");
  if (!map.has("learnt_knee_cores_per_gpu")) return;
  LearntJob learnt;
  map.number("learnt_knee_cores_per_gpu", learnt.knee_cores_per_gpu, kLeastKnee, 1e5);
  map.integer("learnt_workers", learnt.workers, 0, 1 << 20);
  job.learnt = learnt;
}

void read_data(YamlMap& map, const Cluster& cluster, JobSpec& job) {
  for (const char* field : {"epochs", "next_epoch_known"})
    if (map.has(field)) map.require("data_set");
  if (!map.has("data_set")) return;
  std::string name;
  map.text("data_set", name);
  job.data_set = cluster.data_set(name);
  if (job.data_set < 0) map.fail_at("data_set", "the cluster has no data set \"" + name + "\"");
  map.require("epochs");
  map.integer("epochs", job.epochs, 1, 100000);
  map.boolean("next_epoch_known", job.next_epoch_known);
  // A block of it takes no less than a moment of simulated time.
  if (job.ideal_seconds / job.epochs < 1) map.fail_at("epochs", "an epoch of less than a second");
}

void read_job(YamlMap& map, const Cluster& cluster, Workload& jobs) {
  JobSpec job;
  job.name = "job-" + std::to_string(jobs.size() + 1);
  map.require("ideal_seconds");
  map.require("knee_cores_per_gpu");
  map.text("name", job.name);
  map.number("arrival_seconds", job.arrival_seconds, 0, kMany);
  map.integer("gpus", job.gpus, 1, 65536);
  map.number("ideal_seconds", job.ideal_seconds, 1e-3, kMany);
  map.number("knee_cores_per_gpu", job.knee_cores_per_gpu, 0, 1e5);
  job.knee_cores_per_gpu = std::max(job.knee_cores_per_gpu, kLeastKnee);
  map.number("network_gbps_per_gpu", job.network_gbps_per_gpu, 0, 1e5);
  map.number("local_cores", job.local_cores, 0, 1e5);
  map.integer("priority", job.priority, -1000000, 1000000);
  map.integer("weight", job.weight, 1, 10000);
  read_startup(map, job);
  read_learnt(map, job);
  read_data(map, cluster, job);
  if (job.gpus > cluster.gpus()) map.fail_at("gpus", larger_than_cluster(job.name, job.gpus, cluster.gpus()));
  if (std::any_of(jobs.begin(), jobs.end(), [&](const JobSpec& other) { return other.name == job.name; }))
    map.fail_at("name", "there are two jobs \"" + job.name + "\"");
  jobs.push_back(std::move(job));
}

bool has_node(const Cluster& cluster, const std::string& name) {
  return std::any_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
    for (int i = 0; i < group.count; ++i)
      if (name == group.node_name(i)) return true;
    return false;
  });
}

void read_incident(YamlMap& map, const Cluster& cluster, std::vector<Incident>& incidents) {
  Incident incident;
  std::string kind;
  map.require("kind");
  map.text("kind", kind);
  map.text("node", incident.node);
  map.number("at_seconds", incident.at_seconds, 0, kMany);
  map.number("for_seconds", incident.for_seconds, 0, kMany);
  if (kind == "node-down")
    incident.kind = IncidentKind::kNodeDown;
  else if (kind == "drain")
    incident.kind = IncidentKind::kCordon;
  else if (kind == "metrics-lost")
    incident.kind = IncidentKind::kMetricsLost;
  else
    map.fail_at("kind", "\"" + kind + "\" is none of node-down, drain, metrics-lost");
  if (incident.kind == IncidentKind::kMetricsLost) {
    if (map.has("node")) map.fail_at("node", "metrics are lost of all nodes together");
  } else if (!has_node(cluster, incident.node)) {
    map.fail_at("node", "the cluster has no node \"" + incident.node + "\"");
  }
  incidents.push_back(std::move(incident));
}

void read_goal(YamlMap& map, std::vector<Goal>& goals) {
  Goal goal;
  map.require("figure");
  map.text("figure", goal.figure);
  const auto bound = [&](std::string_view key, std::optional<double>& out) {
    if (!map.has(key)) return;
    double value = 0;
    map.number(key, value, 0, kMany);
    out = value;
  };
  bound("at_least", goal.at_least);
  bound("at_most", goal.at_most);
  if (!goal.at_least && !goal.at_most) map.fail("neither at_least nor at_most");
  goals.push_back(std::move(goal));
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return errno_error("open " + path);
  std::string text;
  std::array<char, 1 << 14> part{};
  while (in.read(part.data(), part.size()) || in.gcount() > 0)
    text.append(part.data(), static_cast<std::size_t>(in.gcount()));
  if (in.bad()) return errno_error("read " + path);
  return text;
}

Result<Scenario> parse_scenario(std::string_view text, const std::string& file) {
  SLUICE_TRY(const auto yaml, YamlFile::parse(text, file));
  Scenario scenario;
  YamlMap map = yaml->root();
  map.require("name");
  map.require("cluster");
  map.text("name", scenario.name);
  map.text("summary", scenario.summary);
  map.map("cluster", [&](YamlMap& inner) { read_cluster(inner, scenario.cluster); });
  map.map("generate", [&](YamlMap& inner) { read_recipe(inner, scenario.cluster, scenario.recipe); });
  map.text("job_list", scenario.job_list);
  map.each("jobs", [&](YamlMap& inner) { read_job(inner, scenario.cluster, scenario.jobs); });
  if (map.has("jobs") && scenario.jobs.empty()) map.fail_at("jobs", "no job");
  if (!map.has("generate") && !map.has("jobs") && !map.has("job_list"))
    map.fail("no jobs: one of generate, job_list and jobs is needed");
  map.each("incidents", [&](YamlMap& inner) { read_incident(inner, scenario.cluster, scenario.incidents); });
  map.boolean("baselines", scenario.baselines);
  map.each("goals", [&](YamlMap& inner) { read_goal(inner, scenario.goals); });
  map.numbers("reference", 0, kMany, [&](const std::string& name, double value) { scenario.reference[name] = value; });
  map.finish();
  if (yaml->error()) return *yaml->error();
  return scenario;
}

Result<Cluster> parse_cluster(std::string_view text, const std::string& file) {
  SLUICE_TRY(const auto yaml, YamlFile::parse(text, file));
  Cluster cluster;
  YamlMap map = yaml->root();
  read_cluster(map, cluster);
  map.finish();
  if (yaml->error()) return *yaml->error();
  return cluster;
}

Result<Profiles> parse_profiles(std::string_view text, const std::string& file) {
  SLUICE_TRY(const auto yaml, YamlFile::parse(text, file));
  Profiles profiles;
  YamlMap map = yaml->root();
  for (const std::string& name : map.keys()) {
    map.map(name, [&](YamlMap& inner) {
      Profile& profile = profiles[name];
      std::string source;  // for people
      inner.require("source");
      inner.require("knee_cores_per_gpu");
      inner.text("source", source);
      inner.number("knee_cores_per_gpu", profile.knee_cores_per_gpu, kLeastKnee, 1e5);
      inner.number("network_gbps_per_gpu", profile.network_gbps_per_gpu, 0, 1e5);
      inner.number("steps_per_second", profile.steps_per_second, 0, kMany);
    });
  }
  map.finish();
  if (yaml->error()) return *yaml->error();
  return profiles;
}

Result<Workload> workload_of(const Scenario& scenario, const Sources& sources, std::uint64_t seed) {
  if (!scenario.jobs.empty()) return scenario.jobs;
  if (sources.lists_folder.empty() || scenario.job_list.empty()) {
    if (scenario.recipe.models.empty())
      return not_found(scenario.name + ": its jobs are in " + scenario.job_list + "; --job-lists says where");
    return generate(scenario.recipe, scenario.cluster.gpus(), sources.profiles, seed);
  }
  std::string name = scenario.job_list;
  if (const auto at = name.find("{seed}"); at != std::string::npos) name.replace(at, 6, std::to_string(seed));
  const std::string path = sources.lists_folder + "/" + name;
  SLUICE_TRY(const std::string text, read_file(path));
  SLUICE_TRY(Workload jobs, parse_trace(TraceFormat::kJobList, text, path, {}, sources.profiles));
  SLUICE_TRY_VOID(check_sizes(jobs, path, scenario.cluster.gpus()));
  return jobs;
}

}  // namespace sluice::simulator
