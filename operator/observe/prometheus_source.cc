#include "operator/observe/prometheus_source.h"

#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::observe {
namespace {

using scheduler::JobId;
using scheduler::Measurement;
using scheduler::Observation;

std::string with_window(std::string query, int window_seconds) {
  constexpr std::string_view kMacro = "$window";
  const std::string window = std::to_string(window_seconds) + "s";
  for (std::size_t at; (at = query.find(kMacro)) != std::string::npos;) query.replace(at, kMacro.size(), window);
  return query;
}

// One query's answer for one job (and one placement).
struct Answer {
  double value = 0;
  double timestamp_seconds = 0;
  std::string problem;  // not empty: the value must not be used
};

struct SeriesKey {
  JobId job;
  std::string placement;  // empty where the query does not group by it
  friend auto operator<=>(const SeriesKey&, const SeriesKey&) = default;
};
using Series = std::map<SeriesKey, Answer>;

std::optional<SeriesKey> key_of(const prom::Labels& labels) {
  const auto name_space = labels.find("job_namespace");
  const auto job = labels.find("training_job");
  if (name_space == labels.end() || job == labels.end()) return std::nullopt;
  const auto placement = labels.find("placement");
  return SeriesKey{{name_space->second, job->second}, placement == labels.end() ? "" : placement->second};
}

Series index(const prom::InstantVector& vector, const std::string& name) {
  Series series;
  for (const prom::Sample& sample : vector.samples) {
    const auto key = key_of(sample.labels);
    if (!key) continue;
    const auto [entry, inserted] = series.try_emplace(*key, Answer{sample.value, sample.timestamp_seconds, ""});
    if (!inserted) entry->second.problem = "metrics.queries." + name + " answers more than one value for the job";
  }
  for (const prom::AbsentSample& absent : vector.absent)
    if (const auto key = key_of(absent.labels)) series[*key].problem = name + " is " + absent.reason;
  return series;
}

struct Question {
  const char* name;
  std::string control::Queries::*query;
};
// The order is that of `Answers` below.
constexpr std::array<Question, 10> kQuestions = {
    {{"samplesPerSecond", &control::Queries::samples_per_second},
     {"computeShare", &control::Queries::compute_share},
     {"dataWaitShare", &control::Queries::data_wait_share},
     {"batchesInWindow", &control::Queries::batches_in_window},
     {"ageSeconds", &control::Queries::age_seconds},
     {"queueDepth", &control::Queries::queue_depth},
     {"queueCapacity", &control::Queries::queue_capacity},
     {"workerSamplesPerSecond", &control::Queries::worker_samples_per_second},
     {"workerBusyCores", &control::Queries::worker_busy_cores},
     {"workersAtWork", &control::Queries::workers_at_work}}};
constexpr std::size_t kNeeded = 5;  // the first ones: without them there is no measurement
enum : std::size_t {
  kSamples,
  kCompute,
  kWait,
  kBatches,
  kAge,
  kDepth,
  kCapacity,
  kWorkerSamples,
  kWorkerCores,
  kWorkersAtWork
};
using Answers = std::array<Series, kQuestions.size()>;

// nullopt with an empty `problem`: the series does not exist.
std::optional<double> value_of(const Series& series, const SeriesKey& key, std::string& problem) {
  const auto found = series.find(key);
  if (found == series.end()) return std::nullopt;
  if (!found->second.problem.empty()) {
    problem = found->second.problem;
    return std::nullopt;
  }
  return found->second.value;
}

Observation missing(std::string reason) { return {std::nullopt, std::move(reason)}; }

Observation observation_of(const JobId& job, const Answers& answers, const control::MetricsSource& config) {
  std::array<double, kNeeded> needed{};
  std::string problem;
  for (std::size_t question = 0; question < kNeeded; ++question) {
    const auto value = value_of(answers[question], {job, ""}, problem);
    if (!problem.empty()) return missing(problem);
    if (!value)
      return missing(std::string("Prometheus has no ") + kQuestions[question].name + " for the job in the last " +
                     std::to_string(config.window_seconds) + " s");
    needed[question] = *value;
  }
  Measurement measured;
  measured.window_end_seconds = answers[kAge].at({job, ""}).timestamp_seconds - needed[kAge];
  measured.window_seconds = config.window_seconds;
  measured.samples_per_second = needed[kSamples];
  measured.compute_share = needed[kCompute];
  measured.wait_share = needed[kWait];
  measured.batches_in_window = needed[kBatches];
  std::string ignored;  // of the queue, which only people look at
  measured.queue_depth = value_of(answers[kDepth], {job, ""}, ignored).value_or(0);
  measured.queue_capacity = value_of(answers[kCapacity], {job, ""}, ignored).value_or(0);
  for (const auto& [placement, source] : {std::pair{"local", &measured.local}, std::pair{"remote", &measured.remote}}) {
    const auto samples = value_of(answers[kWorkerSamples], {job, placement}, problem);
    const auto cores = value_of(answers[kWorkerCores], {job, placement}, problem);
    if (!problem.empty()) return missing(problem);
    if (samples && cores) *source = scheduler::SourceRate{*samples, *cores};
  }
  // Nothing to count is no series, which here means zero.
  measured.workers_at_work = value_of(answers[kWorkersAtWork], {job, ""}, problem).value_or(0);
  if (!problem.empty()) return missing(problem);
  return {measured, ""};
}

}  // namespace

scheduler::Observation Observations::of(const JobId& job) const {
  const auto found = jobs.find(job);
  return found == jobs.end() ? missing(missing_reason) : found->second;
}

PrometheusSource::PrometheusSource(QueryFunction query, const control::MetricsSource& config)
    : query_(std::move(query)), config_(config) {}

Observations PrometheusSource::observe(std::stop_token stop) const {
  if (config_.url.empty()) return {{}, "no Prometheus is configured (metrics.url is empty)"};
  Answers answers;
  for (std::size_t question = 0; question < kQuestions.size(); ++question) {
    const auto vector = query_(with_window(config_.queries.*kQuestions[question].query, config_.window_seconds), stop);
    if (!vector.ok())
      return {{}, "query " + std::string(kQuestions[question].name) + " failed: " + vector.error().message()};
    answers[question] = index(*vector, kQuestions[question].name);
  }
  Observations observations;
  observations.missing_reason =
      "Prometheus knows no series of the job; is its trainer running, and are its pods scraped?";
  for (const Series& series : answers)
    for (const auto& [key, answer] : series)
      if (!observations.jobs.contains(key.job))
        observations.jobs.emplace(key.job, observation_of(key.job, answers, config_));
  return observations;
}

}  // namespace sluice::observe
