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

void add(Counter& counter, double before, double now) { counter.Increment(std::max(0.0, now - before)); }

}  // namespace

struct FeederMetrics::Families {
  Families(prometheus::Registry& registry, const executor::JobLabels& job)
      : constant{{"job_namespace", job.job_namespace}, {"training_job", job.job}},
        samples(counter(registry, "sluice_trainer_samples_total", "Samples consumed by the training loop.")),
        batches(counter(registry, "sluice_trainer_batches_total", "Batches consumed by the training loop.")),
        step_seconds(counter(registry, "sluice_trainer_step_seconds_total", "Seconds of the training loop, by phase.")),
        queue_depth(gauge(registry, "sluice_trainer_queue_depth", "Batches ready for the training loop.")),
        queue_capacity(gauge(registry, "sluice_trainer_queue_capacity", "Batches that the client asks for ahead.")),
        epoch(gauge(registry, "sluice_trainer_epoch", "Current pass over the data.")),
        handed_over(counter(registry, "sluice_feeder_batches_total", "First answers handed to a client.")),
        local(handed_over.Add({{"placement", "local"}})),
        remote(handed_over.Add({{"placement", "remote"}})),
        reissued(
            counter(registry, "sluice_feeder_reissued_batches_total", "Batches asked for again elsewhere.").Add({})),
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
  Family<Counter>& batches;
  Family<Counter>& step_seconds;
  Family<Gauge>& queue_depth;
  Family<Gauge>& queue_capacity;
  Family<Gauge>& epoch;
  Family<Counter>& handed_over;
  Counter& local;
  Counter& remote;
  Counter& reissued;
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
  if (!ranks_.contains(number) && ranks_.size() >= kRanksMax) number = -1;
  const auto [entry, is_new] = ranks_.try_emplace(number);
  if (is_new) {
    const std::string text = std::to_string(number);
    entry->second = {
        .samples = &families_->samples.Add({{"rank", text}}),
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
  Rank& series = rank(number);
  add(*series.samples, static_cast<double>(before.samples), static_cast<double>(now.samples));
  add(*series.batches, static_cast<double>(before.batches), static_cast<double>(now.batches));
  add(*series.compute_seconds, before.compute_seconds, now.compute_seconds);
  add(*series.wait_seconds, before.wait_seconds, now.wait_seconds);
  series.queue_depth->Set(now.queue_depth);
  series.queue_capacity->Set(now.queue_capacity);
  series.epoch->Set(now.epoch);
}

void FeederMetrics::count_batch(std::string_view placement, double unix_seconds) {
  const bool is_remote = placement == "remote";
  (is_remote ? families_->remote : families_->local).Increment();
  if (is_remote && !std::exchange(had_remote_batch_, true)) families_->first_remote.Set(unix_seconds);
}

void FeederMetrics::count_reissued(std::size_t batches) { families_->reissued.Increment(static_cast<double>(batches)); }
void FeederMetrics::count_duplicate() { families_->duplicates.Increment(); }
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
