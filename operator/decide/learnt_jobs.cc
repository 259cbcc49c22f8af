#include "operator/decide/learnt_jobs.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sluice::decide {
namespace {

using nlohmann::json;
using scheduler::EstimatorMemory;
using scheduler::Tracked;

constexpr std::size_t kMostJobs = 500;
constexpr double kOldestSeconds = 30 * 24 * 3600;
constexpr double kNewsFraction = 0.1;  // a knee that moved by more is worth a write

// A positive number that a job may have; nullopt for anything else.
std::optional<double> positive(const json& entry, const char* name) {
  const auto found = entry.find(name);
  if (found == entry.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  constexpr double kLeast = 1e-12, kMost = 1e18;
  if (!(value >= kLeast && value <= kMost)) return std::nullopt;
  return value;
}

json encoded(const LearntJob& job) {
  json entry = {{"demand", job.memory.demand_samples_per_second},
                {"knee", job.memory.knee_cores->published},
                {"feedback", job.memory.feedback},
                {"workers", job.workers},
                {"at", std::llround(job.learnt_at_seconds)}};
  if (job.memory.local_rate_per_core) entry["localRate"] = job.memory.local_rate_per_core->published;
  if (job.memory.remote_rate_per_core) entry["remoteRate"] = job.memory.remote_rate_per_core->published;
  if (job.size) entry["workerMillicores"] = job.size->millicores, entry["workerMemory"] = job.size->memory_bytes;
  return entry;
}

std::optional<LearntJob> decoded(const json& text) {
  const json entry = json::parse(text.is_string() ? text.get<std::string>() : "", nullptr, false);
  if (!entry.is_object()) return std::nullopt;
  const auto demand = positive(entry, "demand");
  const auto knee = positive(entry, "knee");
  const auto at = positive(entry, "at");
  const auto local = positive(entry, "localRate");
  const auto remote = positive(entry, "remoteRate");
  if (!demand || !knee || !at || (!local && !remote)) return std::nullopt;
  LearntJob job;
  job.memory.demand_samples_per_second = *demand;
  job.memory.knee_cores = Tracked::starting_at(*knee);
  if (local) job.memory.local_rate_per_core = Tracked::starting_at(*local);
  if (remote) job.memory.remote_rate_per_core = Tracked::starting_at(*remote);
  job.memory.feedback = std::clamp(positive(entry, "feedback").value_or(1), 0.125, 8.0);
  job.workers = static_cast<int>(std::min(positive(entry, "workers").value_or(0), 1e6));
  const auto millicores = positive(entry, "workerMillicores");
  const auto memory_bytes = positive(entry, "workerMemory");
  if (millicores && memory_bytes)
    job.size = {std::llround(std::min(*millicores, 1e9)), std::llround(std::min(*memory_bytes, 1e18))};
  job.learnt_at_seconds = *at;
  return job;
}

bool is_news(const LearntJob& before, const LearntJob& now) {
  const double knee = before.memory.knee_cores->published;
  return before.workers != now.workers || before.size != now.size ||
         std::abs(now.memory.knee_cores->published - knee) > kNewsFraction * knee;
}

}  // namespace

void LearntJobs::load(const json& data, double now_seconds) {
  if (!data.is_object()) return;
  for (const auto& [likeness, text] : data.items())
    if (auto job = decoded(text); job && now_seconds - job->learnt_at_seconds <= kOldestSeconds)
      jobs_.try_emplace(likeness, std::move(*job));
}

json LearntJobs::data() const {
  json data = json::object();
  for (const auto& [likeness, job] : jobs_) data[likeness] = encoded(job).dump();
  return data;
}

LearntJobs::Entry LearntJobs::most_like(const std::string& likeness) const {
  if (const auto same = jobs_.find(likeness); same != jobs_.end()) return same;
  const std::string kind = likeness.substr(0, likeness.find('.'));
  auto newest = jobs_.end();
  for (auto entry = jobs_.lower_bound(kind); entry != jobs_.end() && entry->first.starts_with(kind); ++entry)
    if (newest == jobs_.end() || entry->second.learnt_at_seconds > newest->second.learnt_at_seconds) newest = entry;
  return newest;
}

std::optional<LearntJob> LearntJobs::find(const std::string& likeness, double now_seconds) const {
  const auto found = most_like(likeness);
  if (found == jobs_.end() || now_seconds - found->second.learnt_at_seconds > kOldestSeconds) return std::nullopt;
  LearntJob job = found->second;
  // The answer is that of a restarted operator, which knows only what was written.
  return decoded(encoded(job).dump());
}

void LearntJobs::learn(const std::string& likeness, const EstimatorMemory& memory, int workers,
                       std::optional<api::WorkerSize> size, double now_seconds) {
  if (!memory.knee_cores || (!memory.local_rate_per_core && !memory.remote_rate_per_core)) return;
  const LearntJob job{memory, workers, size, now_seconds};
  const auto [entry, is_new] = jobs_.try_emplace(likeness, job);
  has_news_ = has_news_ || is_new || is_news(entry->second, job);
  entry->second = job;
  if (jobs_.size() > kMostJobs)
    jobs_.erase(std::min_element(jobs_.begin(), jobs_.end(), [](const auto& a, const auto& b) {
      return a.second.learnt_at_seconds < b.second.learnt_at_seconds;
    }));
}

}  // namespace sluice::decide
