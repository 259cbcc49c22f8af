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
    blocked_seconds = &prometheus::BuildCounter()
                           .Name("sluice_worker_blocked_seconds_total")
                           .Help("Seconds for which executors waited for what they read, with a batch in hand.")
                           .Labels(constant)
                           .Register(registry);
    bytes = &counter(registry, "sluice_worker_bytes_total", "Bytes of finished batches, as sent or stored.", here);
    errors = &counter(registry, "sluice_worker_errors_total", "Batches that ended in an error.", here);
    memory_peak_bytes = &prometheus::BuildGauge()
                             .Name("sluice_worker_memory_peak_bytes")
                             .Help("Largest working set of the process's cgroup so far, as seen every second.")
                             .Labels(constant)
                             .Register(registry);
    threads = &gauge(registry, "sluice_worker_threads", "Threads that execute batches.");
    queue_depth = &gauge(registry, "sluice_worker_queue_depth", "Batches accepted and not yet finished.");
    op_seconds = &prometheus::BuildCounter()
                      .Name("sluice_worker_op_seconds_total")
                      .Help("CPU seconds spent in each native operation.")
                      .Labels(constant)
                      .Register(registry);
    op_bytes = &prometheus::BuildCounter()
                    .Name("sluice_worker_op_bytes_total")
                    .Help("Bytes that each native operation has made.")
                    .Labels(constant)
                    .Register(registry);
    for (const char* op : {"read", "decode", "resample", "finish"}) count_op(op, {});
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

  void count_op(std::string_view op, const pipeline::Cost& cost) {
    Labels labels = here;
    labels.emplace("op", op);
    op_seconds->Add(labels).Increment(cost.seconds);
    op_bytes->Add(labels).Increment(static_cast<double>(cost.bytes));
  }

  const Labels constant;
  const Labels here;
  KindSeries kinds[2];
  Counter* transport_seconds = nullptr;
  prometheus::Family<Counter>* blocked_seconds;
  Counter* bytes;
  Counter* errors;
  prometheus::Family<Gauge>* memory_peak_bytes;
  Gauge* threads;
  Gauge* queue_depth;
  prometheus::Family<Counter>* op_seconds;
  prometheus::Family<Counter>* op_bytes;
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
  count_unwanted(kind, busy_seconds);
  series_->errors->Increment();
}

void ExecutorMetrics::count_blocked(ExecutorKind kind, double seconds) {
  Labels labels = series_->here;
  labels.emplace("executor", to_string(kind));
  series_->blocked_seconds->Add(labels).Increment(seconds);
}

void ExecutorMetrics::count_unwanted(ExecutorKind kind, double busy_seconds) {
  series_->kinds[kind == ExecutorKind::kPython].busy_seconds->Increment(busy_seconds);
}

void ExecutorMetrics::set_transport_seconds(double total) {
  if (series_->transport_seconds == nullptr) return;
  series_->transport_seconds->Increment(std::max(0.0, total - series_->transport_seconds->Value()));
}

void ExecutorMetrics::count_ops(pipeline::OpCosts& costs) {
  series_->count_op("read", costs.read);
  series_->count_op("decode", costs.decode);
  series_->count_op("resample", costs.resample);
  for (const auto& [op, cost] : costs.ops) series_->count_op(op, cost);
  series_->count_op("finish", costs.finish);
  if (costs.read.seconds > 0) count_blocked(ExecutorKind::kNative, costs.blocked_seconds);
  costs = {};
}

void ExecutorMetrics::set_threads(std::size_t threads) { series_->threads->Set(static_cast<double>(threads)); }

void ExecutorMetrics::set_queue_depth(std::size_t batches) { series_->queue_depth->Set(static_cast<double>(batches)); }

void ExecutorMetrics::saw_memory(std::size_t bytes) {
  Gauge& peak = series_->memory_peak_bytes->Add(series_->here);
  peak.Set(std::max(peak.Value(), static_cast<double>(bytes)));
}

}  // namespace sluice::executor
