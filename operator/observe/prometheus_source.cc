#include "operator/observe/prometheus_source.h"

#include <algorithm>
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

void replace_all(std::string& text, std::string_view macro, const std::string& value) {
  for (std::size_t at = 0; (at = text.find(macro, at)) != std::string::npos; at += value.size())
    text.replace(at, macro.size(), value);
}

std::string expanded(std::string query, int window_seconds, const std::string& namespace_label) {
  replace_all(query, "$window", std::to_string(window_seconds) + "s");
  replace_all(query, "$namespace", namespace_label);
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

// What one query says of all jobs.
struct Series {
  std::map<SeriesKey, Answer> values;
  std::string failure;  // not empty: the query failed, and there are no values
};

std::optional<SeriesKey> key_of(const prom::Labels& labels, const std::string& namespace_label) {
  const auto name_space = labels.find(namespace_label);
  const auto job = labels.find("training_job");
  if (name_space == labels.end() || job == labels.end()) return std::nullopt;
  const auto placement = labels.find("placement");
  return SeriesKey{{name_space->second, job->second}, placement == labels.end() ? "" : placement->second};
}

// Shares, rates, counts, ages and bytes are never below zero, nor so large. Anybody's pod may export anything.
std::string problem_of(double value, const std::string& name) {
  constexpr double kMost = 1e15;
  if (value >= 0 && value <= kMost) return "";
  if (!std::isfinite(value)) return name + " is no number";
  return name + (value < 0 ? " is negative" : " is more than any job has");
}

// The series of one answer. Sets `unplaced` where one has no job or no namespace.
Series index(const prom::InstantVector& vector, const std::string& name, const std::string& namespace_label,
             bool& unplaced) {
  Series series;
  for (const prom::Sample& sample : vector.samples) {
    const auto key = key_of(sample.labels, namespace_label);
    if (!key) unplaced = true;
    if (!key) continue;
    const auto [entry, inserted] =
        series.values.try_emplace(*key, Answer{sample.value, sample.timestamp_seconds, problem_of(sample.value, name)});
    if (!inserted) entry->second.problem = "metrics.queries." + name + " answers more than one value for the job";
  }
  for (const prom::AbsentSample& absent : vector.absent)
    if (const auto key = key_of(absent.labels, namespace_label))
      series.values[*key].problem = name + " is " + absent.reason;
  return series;
}

struct Question {
  const char* name;
  std::string control::Queries::*query;
};
// The order is that of `Answers` below. Those without which there is no measurement are asked first: a slow server
// answers them before the round ends.
constexpr std::array<Question, 16> kQuestions = {
    {{"samplesPerSecond", &control::Queries::samples_per_second},
     {"computeShare", &control::Queries::compute_share},
     {"dataWaitShare", &control::Queries::data_wait_share},
     {"batchesInWindow", &control::Queries::batches_in_window},
     {"ageSeconds", &control::Queries::age_seconds},
     {"workerSamplesPerSecond", &control::Queries::worker_samples_per_second},
     {"workerBusyCores", &control::Queries::worker_busy_cores},
     {"workersAtWork", &control::Queries::workers_at_work},
     {"queueDepth", &control::Queries::queue_depth},
     {"queueCapacity", &control::Queries::queue_capacity},
     {"bytesPerSample", &control::Queries::bytes_per_sample},
     {"readBytesPerSample", &control::Queries::read_bytes_per_sample},
     {"blockedThreads", &control::Queries::blocked_threads},
     {"workerMemoryBytes", &control::Queries::worker_memory_bytes},
     {"remainingSamples", &control::Queries::remaining_samples},
     {"scrapesInWindow", &control::Queries::scrapes_in_window}}};
constexpr std::size_t kNeeded = 5;    // the first ones: without a series of theirs there is no measurement
constexpr std::size_t kDecisive = 8;  // the first ones: if one of them fails, there is no measurement
enum : std::size_t {
  kSamples,
  kCompute,
  kWait,
  kBatches,
  kAge,
  kWorkerSamples,
  kWorkerCores,
  kWorkersAtWork,
  kDepth,
  kCapacity,
  kBytesPerSample,
  kReadBytes,
  kBlockedThreads,
  kWorkerMemory,
  kRemainingSamples,
  kScrapes
};
using Answers = std::array<Series, kQuestions.size()>;

std::optional<double> newest(const Answers& answers) {
  std::optional<double> newest_seconds;
  for (const Series& series : answers)
    for (const auto& [key, answer] : series.values)
      newest_seconds = std::max(newest_seconds.value_or(answer.timestamp_seconds), answer.timestamp_seconds);
  return newest_seconds;
}

// A server that answers from a cache mixes two windows: rates of one with the waiting of the other.
void refuse_stale(Answers& answers, double newest_seconds, double window_seconds) {
  for (std::size_t question = 0; question < answers.size(); ++question)
    for (auto& [key, answer] : answers[question].values)
      if (answer.problem.empty() && newest_seconds - answer.timestamp_seconds > window_seconds)
        answer.problem = std::string(kQuestions[question].name) + " is older than the other answers";
}

// nullopt with an empty `problem`: the series does not exist.
std::optional<double> value_of(const Series& series, const SeriesKey& key, std::string& problem) {
  const auto found = series.values.find(key);
  const bool exists = found != series.values.end();
  const std::string& trouble = exists ? found->second.problem : series.failure;
  if (!trouble.empty()) problem = trouble;
  if (!exists || !trouble.empty()) return std::nullopt;
  return found->second.value;
}

// The way out of an error of the connection; empty for other errors.
std::string way_out_of(ErrorCode code) {
  const bool is_refused = code == ErrorCode::kUnauthenticated || code == ErrorCode::kPermissionDenied;
  return is_refused ? "; set metrics.connection of the chart" : "";
}

// Of the first `count` queries; empty: none of them failed.
std::string first_failure(const Answers& answers, std::size_t count) {
  for (std::size_t question = 0; question < count; ++question)
    if (!answers[question].failure.empty()) return answers[question].failure;
  return "";
}

// Why a job has no measurement of which no answer speaks.
std::string why_unseen(const Answers& answers, bool unplaced, const std::string& namespace_label) {
  if (std::string failure = first_failure(answers, kDecisive); !failure.empty()) return failure;
  std::string reason = "Prometheus knows no series of the job; is its trainer running, and are its pods scraped?";
  if (unplaced)
    reason += " Its answers hold series without the scrape's label '" + namespace_label +
              "': metrics.namespaceLabel must name the label of a pod's namespace";
  return reason;
}

Observation missing(std::string reason) { return {std::nullopt, std::move(reason)}; }

// None if either figure is missing or unusable: a depth without a capacity may be little or much.
std::optional<scheduler::PrefetchQueue> queue_of(const JobId& job, const Answers& answers) {
  std::string problem;  // people look at the queue, too, but no plan depends on it alone
  const auto depth = value_of(answers[kDepth], {job, ""}, problem);
  const auto capacity = value_of(answers[kCapacity], {job, ""}, problem);
  if (!depth || !capacity || *capacity <= 0) return std::nullopt;
  return scheduler::PrefetchQueue{*depth, *capacity};
}

// None: no executor of this placement has worked. One of the two figures alone is a problem, because both come from
// the same scrape.
std::optional<scheduler::SourceRate> source_of(const SeriesKey& key, const Answers& answers, std::string& problem) {
  const auto samples = value_of(answers[kWorkerSamples], key, problem);
  const auto cores = value_of(answers[kWorkerCores], key, problem);
  if (samples && cores) return scheduler::SourceRate{*samples, *cores};
  if (problem.empty() && (samples || cores))
    problem = std::string("Prometheus has no ") + kQuestions[samples ? kWorkerCores : kWorkerSamples].name +
              " for the job's " + key.placement + " executors";
  return std::nullopt;
}

Observation observation_of(const JobId& job, const Answers& answers, int window_seconds) {
  std::array<double, kNeeded> needed{};
  std::string problem;
  for (std::size_t question = 0; question < kNeeded; ++question) {
    const auto value = value_of(answers[question], {job, ""}, problem);
    if (!problem.empty()) return missing(problem);
    if (!value)
      return missing(std::string("Prometheus has no ") + kQuestions[question].name + " for the job in the last " +
                     std::to_string(window_seconds) + " s");
    needed[question] = *value;
  }
  Measurement measured;
  measured.window_end_seconds = answers[kAge].values.at({job, ""}).timestamp_seconds - needed[kAge];
  measured.window_seconds = window_seconds;
  measured.samples_per_second = needed[kSamples];
  measured.compute_share = needed[kCompute];
  measured.wait_share = needed[kWait];
  measured.batches_in_window = needed[kBatches];
  measured.queue = queue_of(job, answers);
  measured.local = source_of({job, "local"}, answers, problem);
  measured.remote = source_of({job, "remote"}, answers, problem);
  // The only answer whose absence is a figure: Prometheus gives no series for a count of no workers.
  measured.workers_at_work = value_of(answers[kWorkersAtWork], {job, ""}, problem).value_or(0);
  if (!problem.empty()) return missing(problem);
  std::string unknown;  // of storage: no measurement is refused for it
  measured.blocked_threads = value_of(answers[kBlockedThreads], {job, ""}, unknown);
  measured.read_bytes_per_sample = value_of(answers[kReadBytes], {job, ""}, unknown);
  return {measured, ""};
}

std::string rare_scrapes(const ScrapeWindow& window, int configured_seconds) {
  if (!window.is_much_longer_than_configured() && !window.is_too_short()) return "";
  constexpr int kLeastScrapes = static_cast<int>(ScrapeWindow::kLeastScrapes);
  const std::string seconds = std::to_string(window.seconds());
  const std::string seen = window.is_too_short()
                               ? "Prometheus scrapes the jobs' pods fewer than " + std::to_string(kLeastScrapes) +
                                     " times in " + seconds + " s, too rarely for a decision"
                               : "Prometheus scrapes the jobs' pods so rarely that decisions look back " + seconds +
                                     " s and not " + std::to_string(configured_seconds) +
                                     " s (metrics.windowSeconds), and so come late";
  return seen + ": scrape every " + std::to_string(std::max(1, configured_seconds / kLeastScrapes)) +
         " s (podMonitor.interval, or scrape_interval of your Prometheus).";
}

using Figures = std::map<JobId, double>;

// The answer's values that can be used.
Figures figures(const Series& series) {
  Figures usable;
  for (const auto& [key, answer] : series.values)
    if (answer.problem.empty()) usable[key.job] = answer.value;
  return usable;
}

std::optional<double> largest(const Figures& figures) {
  std::optional<double> most;
  for (const auto& [job, figure] : figures) most = std::max(most.value_or(figure), figure);
  return most;
}

std::optional<double> figure_of(const Figures& figures, const JobId& job) {
  const auto found = figures.find(job);
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

// The last thing that is asked: no measurement depends on it.
void take_kept(const Result<prom::InstantVector>& answer, const control::MetricsSource& config,
               Observations& observations) {
  if (answer.ok())
    observations.kept = KeptByCaches(*answer, config.namespace_label, config.own_namespace);
  else if (observations.problem.empty())
    observations.problem = "query keptBytes failed: " + answer.error().message();
}

}  // namespace

void Observations::move_times(double seconds) {
  for (auto& [job, observation] : jobs)
    if (observation.measurement) observation.measurement->window_end_seconds += seconds;
  if (answered_at_seconds) *answered_at_seconds += seconds;
}

scheduler::Observation Observations::of(const JobId& job) const {
  const auto found = jobs.find(job);
  return found == jobs.end() ? missing(missing_reason) : found->second;
}

std::optional<double> Observations::bytes_per_sample_of(const JobId& job) const {
  return figure_of(bytes_per_sample, job);
}

std::optional<double> Observations::worker_memory_bytes_of(const JobId& job) const {
  return figure_of(worker_memory_bytes, job);
}

std::optional<double> Observations::remaining_samples_of(const JobId& job) const {
  return figure_of(remaining_samples, job);
}

PrometheusSource::PrometheusSource(QueryFunction query, const control::MetricsSource& config, const Clock& clock)
    : query_(std::move(query)), config_(config), clock_(clock), window_(config.window_seconds) {}

Observations PrometheusSource::observe(std::stop_token stop) {
  if (config_.url.empty()) return {.missing_reason = "no Prometheus is configured (metrics.url is empty)"};
  std::vector<std::string> expressions;
  expressions.reserve(kQuestions.size());
  const int window_seconds = window_.seconds();
  for (const Question& question : kQuestions)
    expressions.push_back(expanded(config_.queries.*question.query, window_seconds, config_.namespace_label));
  if (!config_.queries.kept_bytes.empty())
    expressions.push_back(expanded(config_.queries.kept_bytes, window_seconds, config_.namespace_label));
  const auto vectors = ask_all(expressions, query_, at_once_, clock_, std::move(stop));

  bool unplaced = false;
  Answers answers;
  for (std::size_t question = 0; question < kQuestions.size(); ++question) {
    const std::string name = kQuestions[question].name;
    if (const auto& vector = vectors[question]; vector.ok())
      answers[question] = index(*vector, name, config_.namespace_label, unplaced);
    else
      answers[question].failure =
          "query " + name + " failed: " + vector.error().message() + way_out_of(vector.error().code());
  }
  const std::optional<double> newest_seconds = newest(answers);
  if (newest_seconds) refuse_stale(answers, *newest_seconds, window_seconds);

  Observations observations;
  observations.answered_at_seconds = newest_seconds;
  observations.problem = first_failure(answers, answers.size());
  if (vectors.size() > kQuestions.size()) take_kept(vectors.back(), config_, observations);
  observations.missing_reason = why_unseen(answers, unplaced, config_.namespace_label);
  for (const Series& series : answers)
    for (const auto& [key, answer] : series.values)
      if (!observations.jobs.contains(key.job))
        observations.jobs.emplace(key.job, observation_of(key.job, answers, window_seconds));
  observations.bytes_per_sample = figures(answers[kBytesPerSample]);
  observations.worker_memory_bytes = figures(answers[kWorkerMemory]);
  observations.remaining_samples = figures(answers[kRemainingSamples]);
  if (const auto most = largest(figures(answers[kScrapes]))) window_.take(*most);
  observations.rare_scrapes = rare_scrapes(window_, config_.window_seconds);
  return observations;
}

}  // namespace sluice::observe
