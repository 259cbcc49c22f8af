#include "src/executor/executor_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <algorithm>

namespace sluice::executor {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using Labels = std::map<std::string, std::string>;

struct KindSeries {
  Counter* samples;
  Counter* busy_seconds;
};

}  // namespace

struct ExecutorMetrics::Series {
  Series(prometheus::Registry& registry, const JobLabels& job, const std::string& placement)
      : constant{{"job_namespace", job.job_namespace}, {"training_job", job.job}}, here{{"placement", placement}} {
    for (const ExecutorKind kind : {ExecutorKind::kNative, ExecutorKind::kPython}) {
      const std::string executor(to_string(kind));
      kinds[kind == ExecutorKind::kPython] = {&counter(registry, "sluice_worker_samples_total", "Samples executed.",
                                                       {{"placement", placement}, {"executor", executor}}),
                                              &busy_counter(registry, placement, executor)};
    }
    // A feeder's own transport serves remote batches, too, and is no part of what local execution costs.
    if (placement == "remote") transport_seconds = &busy_counter(registry, placement, "transport");
    bytes = &counter(registry, "sluice_worker_bytes_total", "Bytes of finished batches, as sent or stored.", here);
    errors = &counter(registry, "sluice_worker_errors_total", "Batches that ended in an error.", here);
    threads = &gauge(registry, "sluice_worker_threads", "Threads that execute batches.");
    queue_depth = &gauge(registry, "sluice_worker_queue_depth", "Batches accepted and not yet finished.");
    const char* const names[] = {"read", "decode", "resample", "finish"};
    for (int op = 0; op < 4; ++op) {
      ops[op] = &counter(registry, "sluice_worker_op_seconds_total", "Seconds spent in each native operation.",
                         {{"placement", placement}, {"op", names[op]}});
    }
  }

  Counter& counter(prometheus::Registry& registry, const char* name, const char* help, const Labels& labels) {
    return prometheus::BuildCounter().Name(name).Help(help).Labels(constant).Register(registry).Add(labels);
  }
  Counter& busy_counter(prometheus::Registry& registry, const std::string& placement, const std::string& executor) {
    return counter(registry, "sluice_worker_busy_seconds_total",
                   "CPU seconds of the threads and processes that executed.",
                   {{"placement", placement}, {"executor", executor}});
  }
  Gauge& gauge(prometheus::Registry& registry, const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Labels(constant).Register(registry).Add(here);
  }

  const Labels constant;
  const Labels here;
  KindSeries kinds[2];
  Counter* transport_seconds = nullptr;
  Counter* bytes;
  Counter* errors;
  Gauge* threads;
  Gauge* queue_depth;
  Counter* ops[4];
};

ExecutorMetrics::ExecutorMetrics(prometheus::Registry& registry, const JobLabels& labels, const std::string& placement)
    : series_(std::make_unique<Series>(registry, labels, placement)) {}

ExecutorMetrics::~ExecutorMetrics() = default;

void ExecutorMetrics::count_batch(ExecutorKind kind, std::size_t samples, double busy_seconds, std::size_t bytes) {
  const KindSeries& series = series_->kinds[kind == ExecutorKind::kPython];
  series.samples->Increment(static_cast<double>(samples));
  series.busy_seconds->Increment(busy_seconds);
  series_->bytes->Increment(static_cast<double>(bytes));
}

void ExecutorMetrics::count_error(ExecutorKind kind, double busy_seconds) {
  series_->kinds[kind == ExecutorKind::kPython].busy_seconds->Increment(busy_seconds);
  series_->errors->Increment();
}

void ExecutorMetrics::set_transport_seconds(double total) {
  if (series_->transport_seconds == nullptr) return;
  series_->transport_seconds->Increment(std::max(0.0, total - series_->transport_seconds->Value()));
}

void ExecutorMetrics::count_ops(OpSeconds& seconds) {
  const double values[] = {seconds.read, seconds.decode, seconds.resample, seconds.finish};
  for (int op = 0; op < 4; ++op) series_->ops[op]->Increment(values[op]);
  seconds = {};
}

void ExecutorMetrics::set_threads(std::size_t threads) { series_->threads->Set(static_cast<double>(threads)); }

void ExecutorMetrics::set_queue_depth(std::size_t batches) { series_->queue_depth->Set(static_cast<double>(batches)); }

}  // namespace sluice::executor
