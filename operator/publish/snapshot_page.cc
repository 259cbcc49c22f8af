#include "operator/publish/snapshot_page.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "src/kube/json_text.h"

namespace sluice::control {

using nlohmann::json;

namespace {

// Each json_of() names all fields of its struct in one declaration: it does not compile once there is another field.

template <typename Value>
void add_known(const char* name, const std::optional<Value>& value, json& object) {
  if (value) object[name] = *value;
}

// The positions of what is true.
json numbers_of(const std::vector<bool>& flags) {
  json numbers = json::array();
  for (std::size_t number = 0; number < flags.size(); ++number)
    if (flags[number]) numbers.push_back(number);
  return numbers;
}

const char* text_of(scheduler::Mode mode) {
  switch (mode) {
    case scheduler::Mode::kAuto: return "Auto";
    case scheduler::Mode::kRecommend: return "Recommend";
    case scheduler::Mode::kOff: return "Off";
  }
  return "";
}

const char* text_of(scheduler::Placement placement) {
  switch (placement) {
    case scheduler::Placement::kAuto: return "Auto";
    case scheduler::Placement::kLocal: return "Local";
    case scheduler::Placement::kRemote: return "Remote";
  }
  return "";
}

json json_of(const scheduler::Node& node) {
  const auto& [name, allocatable_millicores, requested_by_others_millicores, schedulable, group, domains, gpus,
               free_memory_bytes, network_bytes_per_second, price_per_hour, spot] = node;
  json object = {{"name", name},
                 {"allocatableMillicores", allocatable_millicores},
                 {"requestedByOthersMillicores", requested_by_others_millicores},
                 {"schedulable", schedulable},
                 {"group", group},
                 {"domains", json::array()},
                 {"gpus", gpus},
                 {"pricePerHour", price_per_hour},
                 {"spot", spot}};
  for (const int domain : domains) object["domains"].push_back(domain == scheduler::kNoDomain ? json() : json(domain));
  add_known("freeMemoryBytes", free_memory_bytes, object);
  add_known("networkBytesPerSecond", network_bytes_per_second, object);
  return object;
}

json json_of(const scheduler::Worker& worker) {
  const auto& [name, node, ready, created_at_seconds, ready_since_seconds, draining] = worker;
  json object = {{"name", name},
                 {"node", node},
                 {"ready", ready},
                 {"createdAtSeconds", created_at_seconds},
                 {"draining", draining}};
  if (ready) object["readySinceSeconds"] = ready_since_seconds;
  return object;
}

json json_of(const scheduler::SourceRate& rate) {
  const auto& [samples_per_second, busy_cores] = rate;
  return {{"samplesPerSecond", samples_per_second}, {"busyCores", busy_cores}};
}

json json_of(const scheduler::PrefetchQueue& queue) {
  const auto& [depth, capacity] = queue;
  return {{"depth", depth}, {"capacity", capacity}};
}

json json_of(const scheduler::Measurement& measurement) {
  const auto& [window_end_seconds, window_seconds, samples_per_second, compute_share, wait_share, batches_in_window,
               local, remote, workers_at_work, blocked_threads, queue, read_bytes_per_sample] = measurement;
  json object = {{"windowEndSeconds", window_end_seconds},
                 {"windowSeconds", window_seconds},
                 {"samplesPerSecond", samples_per_second},
                 {"computeShare", compute_share},
                 {"waitShare", wait_share},
                 {"batchesInWindow", batches_in_window}};
  if (local) object["local"] = json_of(*local);
  if (remote) object["remote"] = json_of(*remote);
  add_known("workersAtWork", workers_at_work, object);
  add_known("blockedThreads", blocked_threads, object);
  if (queue) object["queue"] = json_of(*queue);
  add_known("readBytesPerSample", read_bytes_per_sample, object);
  return object;
}

json json_of(const scheduler::Observation& observation) {
  const auto& [measurement, missing_reason] = observation;
  if (!measurement) return {{"missingReason", missing_reason}};
  return {{"measurement", json_of(*measurement)}};
}

json json_of(const scheduler::EstimatorMemory& memory) {
  json object = {{"demandSamplesPerSecond", memory.demand_samples_per_second},
                 {"feedback", memory.feedback},
                 {"wasMeasured", memory.was_measured}};
  if (memory.knee_cores) object["kneeCores"] = memory.knee_cores->published;
  if (memory.local_rate_per_core) object["localRatePerCore"] = memory.local_rate_per_core->published;
  if (memory.remote_rate_per_core) object["remoteRatePerCore"] = memory.remote_rate_per_core->published;
  if (memory.read_bytes_per_sample) object["readBytesPerSample"] = memory.read_bytes_per_sample->published;
  return object;
}

json json_of(const scheduler::SpreadRule& rule) {
  const auto& [topology, most_ahead, counted_domains, closed_outside] = rule;
  return {{"topology", topology},
          {"mostAhead", most_ahead},
          {"countedDomains", numbers_of(counted_domains)},
          {"closedOutside", closed_outside}};
}

json json_of(const scheduler::KeptData& kept) {
  const auto& [node, bytes] = kept;
  return {{"node", node}, {"bytes", bytes}};
}

json json_of(const scheduler::TrainerHost& host) {
  const auto& [node, ranks, gpus, request_millicores, limit_millicores] = host;
  return {{"node", node},
          {"ranks", ranks},
          {"gpus", gpus},
          {"requestMillicores", request_millicores},
          {"limitMillicores", limit_millicores}};
}

json json_of(const scheduler::JobId& id) { return {{"namespace", id.job_namespace}, {"name", id.name}}; }

json json_of(const scheduler::Quota& quota) {
  const auto& [name, worker_millicores, budget_per_hour] = quota;
  json object = {{"name", name}};
  add_known("workerMillicores", worker_millicores, object);
  add_known("budgetPerHour", budget_per_hour, object);
  return object;
}

json json_of(const scheduler::Storage& storage) {
  const auto& [name, bytes_per_second] = storage;
  return {{"name", name}, {"bytesPerSecond", bytes_per_second}};
}

template <typename Part>
json list_of(const std::vector<Part>& parts) {
  json list = json::array();
  for (const Part& part : parts) list.push_back(json_of(part));
  return list;
}

json json_of(const scheduler::Job& job) {
  const auto& [id, running, quota, ranks, gpus, weight, priority, remaining_samples, mode, placement, min_workers,
               max_workers, held_at_gate, worker_millicores, worker_memory_bytes, bytes_per_sample, storage,
               closed_groups, spread, kept, hosts, local_adjustable, allocated_workers, workers, observation, memory] =
      job;
  json object = {{"id", json_of(id)},
                 {"running", running},
                 {"quota", quota},
                 {"storage", storage},
                 {"ranks", ranks},
                 {"gpus", gpus},
                 {"weight", weight},
                 {"priority", priority},
                 {"mode", text_of(mode)},
                 {"placement", text_of(placement)},
                 {"minWorkers", min_workers},
                 {"maxWorkers", max_workers},
                 {"heldAtGate", held_at_gate},
                 {"workerMillicores", worker_millicores},
                 {"workerMemoryBytes", worker_memory_bytes},
                 {"closedGroups", numbers_of(closed_groups)},
                 {"spread", list_of(spread)},
                 {"kept", list_of(kept)},
                 {"hosts", list_of(hosts)},
                 {"localAdjustable", local_adjustable},
                 {"allocatedWorkers", allocated_workers},
                 {"workers", list_of(workers)},
                 {"observation", json_of(observation)}};
  add_known("remainingSamples", remaining_samples, object);
  add_known("bytesPerSample", bytes_per_sample, object);
  if (memory) object["memory"] = json_of(*memory);
  return object;
}

// Writes `, "name": [...]` while there is room. Returns how many parts have none. One part at a time is in memory as
// values, which take several times the room of their text.
template <typename Part>
std::size_t add_list(const char* name, const std::vector<Part>& parts, std::size_t most_bytes, std::string& text) {
  text += ",\"" + std::string(name) + "\":[";
  std::size_t told = 0;
  for (; told < parts.size(); ++told) {
    const std::string part = kube::text_of(json_of(parts[told]));
    if (text.size() + part.size() > most_bytes) break;
    text += (told == 0 ? "" : ",") + part;
  }
  text += "]";
  return parts.size() - told;
}

}  // namespace

std::string snapshot_text(const scheduler::ClusterSnapshot& snapshot, std::size_t most_bytes) {
  const auto& [taken_at_seconds, nodes, jobs, quotas, budget_per_hour, storages] = snapshot;
  json rest = {{"takenAtSeconds", taken_at_seconds}, {"quotas", list_of(quotas)}, {"storages", list_of(storages)}};
  add_known("budgetPerHour", budget_per_hour, rest);
  std::string text = kube::text_of(rest);
  text.pop_back();  // the brace, until the lists are in
  const std::size_t nodes_left = add_list("nodes", nodes, most_bytes / 2, text);
  const std::size_t jobs_left = add_list("jobs", jobs, most_bytes, text);
  if (nodes_left + jobs_left > 0)
    text += ",\"leftOut\":" + kube::text_of(json{{"nodes", nodes_left}, {"jobs", jobs_left}});
  return text + "}";
}

}  // namespace sluice::control
