#include "worker-image/feeder/feeder_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <algorithm>

namespace sluice::feeder {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;

// A label set is for ever: a client that makes up ranks must not fill our memory.
constexpr std::size_t kRanksMax = 1024;
constexpr std::int64_t kOtherRanks = -1;

void add(Counter& counter, double before, double now) { counter.Increment(std::max(0.0, now - before)); }

}  // namespace

struct FeederMetrics::Families {
  Families(prometheus::Registry& registry, const executor::JobLabels& job)
      : constant{{"job_namespace", job.job_namespace}, {"training_job", job.job}},
        samples(counter(registry, "sluice_trainer_samples_total", "Samples consumed by the training loop.")),
        skipped_samples(counter(registry, "sluice_trainer_skipped_samples_total",
                                "Of the samples consumed, those left out of their batches as they could not be made.")),
        batches(counter(registry, "sluice_trainer_batches_total", "Batches consumed by the training loop.")),
        step_seconds(counter(registry, "sluice_trainer_step_seconds_total", "Seconds of the training loop, by phase.")),
        queue_depth(gauge(registry, "sluice_trainer_queue_depth", "Batches ready for the training loop.")),
        queue_capacity(gauge(registry, "sluice_trainer_queue_capacity", "Batches that the client asks for ahead.")),
        epoch(gauge(registry, "sluice_trainer_epoch", "Current pass over the data.")),
        remaining_samples(gauge(registry, "sluice_trainer_remaining_samples",
                                "Samples that the training loop will still take, by its own account.")),
        handed_over(counter(registry, "sluice_feeder_batches_total", "First answers handed to a client.")),
        local(handed_over.Add({{"placement", "local"}})),
        remote(handed_over.Add({{"placement", "remote"}})),
        reissued(
            counter(registry, "sluice_feeder_reissued_batches_total", "Batches asked for again elsewhere.").Add({})),
        hedged(counter(registry, "sluice_feeder_hedged_batches_total", "Late batches given to a second executor.")
                   .Add({})),
        refused(counter(registry, "sluice_feeder_refused_workers_total",
                        "Connections to workers that speak another version of the protocol.")
                    .Add({})),
        duplicates(counter(registry, "sluice_feeder_duplicate_batches_total", "Late answers dropped.").Add({})),
        cpu_seconds(counter(registry, "sluice_feeder_cpu_seconds_total",
                            "CPU seconds of the feeder's own threads, receiving remote batches included.")
                        .Add({})),
        remote_workers(gauge(registry, "sluice_feeder_remote_workers", "Remote workers that take work.").Add({})),
        outstanding(gauge(registry, "sluice_feeder_outstanding_batches", "Batches that executors hold.").Add({})),
        arena_free(gauge(registry, "sluice_feeder_arena_free_bytes", "Free bytes of the arena.").Add({})),
        first_remote(gauge(registry, "sluice_feeder_first_remote_batch_timestamp_seconds",
                           "Unix time of the first batch from a remote worker; 0 before.")
                         .Add({})) {}

  Family<Counter>& counter(prometheus::Registry& registry, const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Labels(constant).Register(registry);
  }
  Family<Gauge>& gauge(prometheus::Registry& registry, const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Labels(constant).Register(registry);
  }

  const std::map<std::string, std::string> constant;
  Family<Counter>& samples;
  Family<Counter>& skipped_samples;
  Family<Counter>& batches;
  Family<Counter>& step_seconds;
  Family<Gauge>& queue_depth;
  Family<Gauge>& queue_capacity;
  Family<Gauge>& epoch;
  Family<Gauge>& remaining_samples;
  Family<Counter>& handed_over;
  Counter& local;
  Counter& remote;
  Counter& reissued;
  Counter& hedged;
  Counter& refused;
  Counter& duplicates;
  Counter& cpu_seconds;
  Gauge& remote_workers;
  Gauge& outstanding;
  Gauge& arena_free;
  Gauge& first_remote;
};

FeederMetrics::FeederMetrics(prometheus::Registry& registry, const executor::JobLabels& labels)
    : families_(std::make_unique<Families>(registry, labels)) {}

FeederMetrics::~FeederMetrics() = default;

FeederMetrics::Rank& FeederMetrics::rank(std::int64_t number) {
  const auto [entry, is_new] = ranks_.try_emplace(number);
  if (is_new) {
    const std::string text = std::to_string(number);
    entry->second = {
        .samples = &families_->samples.Add({{"rank", text}}),
        .skipped_samples = &families_->skipped_samples.Add({{"rank", text}}),
        .batches = &families_->batches.Add({{"rank", text}}),
        .compute_seconds = &families_->step_seconds.Add({{"rank", text}, {"phase", "compute"}}),
        .wait_seconds = &families_->step_seconds.Add({{"rank", text}, {"phase", "data_wait"}}),
        .queue_depth = &families_->queue_depth.Add({{"rank", text}}),
        .queue_capacity = &families_->queue_capacity.Add({{"rank", text}}),
        .epoch = &families_->epoch.Add({{"rank", text}}),
    };
  }
  return entry->second;
}

void FeederMetrics::count_progress(std::int64_t number, const transport::ProgressMessage& before,
                                   const transport::ProgressMessage& now) {
  if (!ranks_.contains(number) && ranks_.size() >= kRanksMax) number = kOtherRanks;
  Rank& series = rank(number);
  add(*series.samples, static_cast<double>(before.samples), static_cast<double>(now.samples));
  add(*series.skipped_samples, static_cast<double>(before.skipped_samples), static_cast<double>(now.skipped_samples));
  add(*series.batches, static_cast<double>(before.batches), static_cast<double>(now.batches));
  add(*series.compute_seconds, before.compute_seconds, now.compute_seconds);
  add(*series.wait_seconds, before.wait_seconds, now.wait_seconds);
  series.queue_depth->Set(now.queue_depth);
  series.queue_capacity->Set(now.queue_capacity);
  series.epoch->Set(now.epoch);
  set_remaining(number, now.remaining_samples, series);
}

void FeederMetrics::set_remaining(std::int64_t number, std::optional<std::uint64_t> samples, Rank& series) {
  if (samples) {
    if (series.remaining_samples == nullptr)
      series.remaining_samples = &families_->remaining_samples.Add({{"rank", std::to_string(number)}});
    series.remaining_samples->Set(static_cast<double>(*samples));
  } else if (prometheus::Gauge* const gone = std::exchange(series.remaining_samples, nullptr)) {
    families_->remaining_samples.Remove(gone);
  }
}

void FeederMetrics::count_batch(std::string_view placement, double unix_seconds) {
  const bool is_remote = placement == "remote";
  (is_remote ? families_->remote : families_->local).Increment();
  if (is_remote && !std::exchange(had_remote_batch_, true)) families_->first_remote.Set(unix_seconds);
}

void FeederMetrics::count_reissued(std::size_t batches) { families_->reissued.Increment(static_cast<double>(batches)); }
void FeederMetrics::count_duplicate() { families_->duplicates.Increment(); }
void FeederMetrics::count_refused_worker() { families_->refused.Increment(); }
void FeederMetrics::count_hedged() { families_->hedged.Increment(); }
void FeederMetrics::set_cpu_seconds(double total) {
  add(families_->cpu_seconds, cpu_seconds_, total);
  cpu_seconds_ = std::max(cpu_seconds_, total);
}
void FeederMetrics::set_remote_workers(std::size_t workers) {
  families_->remote_workers.Set(static_cast<double>(workers));
}
void FeederMetrics::set_outstanding(std::size_t batches) { families_->outstanding.Set(static_cast<double>(batches)); }
void FeederMetrics::set_arena_free(std::size_t bytes) { families_->arena_free.Set(static_cast<double>(bytes)); }

}  // namespace sluice::feeder
