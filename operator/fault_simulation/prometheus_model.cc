#include "operator/fault_simulation/prometheus_model.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "operator/api/feeder_view.h"
#include "operator/api/pod.h"
#include "operator/api/trainer_job.h"
#include "operator/fault_simulation/error_pages.h"

namespace sluice::simulation {

using kube::Json;

namespace {

constexpr double kAgeSeconds = 3;
constexpr double kStaleAgeSeconds = 1000;
constexpr int kWindowSeconds = 30;
// Two days at the highest demand of a workload: a job that ends within a minute gets no new worker.
constexpr double kRemainingSamples = 1e10;

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

struct Series {
  std::string placement;  // empty: the query does not group by it
  double value = 0;
};

std::vector<Series> series_of(const std::string& query, const MeasuredJob& job, double age_seconds) {
  const scheduler::Measurement& measured = job.measurement;
  const int workers = job.workers;
  if (query == "samples") return {{"", measured.samples_per_second}};
  if (query == "compute") return {{"", measured.compute_share}};
  if (query == "wait") return {{"", measured.wait_share}};
  if (query == "batches") return {{"", measured.batches_in_window}};
  if (query == "age") return {{"", age_seconds}};
  if (query == "depth") return {{"", 4}};
  if (query == "capacity") return {{"", 16}};
  if (query == "workers_at_work") return workers > 0 ? std::vector<Series>{{"", 1.0 * workers}} : std::vector<Series>();
  if (query == "bytes") return {{"", 150'000}};
  if (query == "read") return {{"", 110'000}};
  if (query == "blocked") return {{"", 0.0}};  // its executors never wait for what they read
  if (query == "memory")
    return workers > 0 ? std::vector<Series>{{"", 1.0 * job.physics->worker_memory_bytes}} : std::vector<Series>();
  if (query == "remaining") return {{"", kRemainingSamples}};
  if (query == "scrapes") return {{"", 6}};
  const bool samples = query == "worker_samples";
  std::vector<Series> series;
  for (const auto& [placement, rate] : {std::pair{"local", &measured.local}, std::pair{"remote", &measured.remote}})
    if (*rate) series.push_back({placement, samples ? (*rate)->samples_per_second : (*rate)->busy_cores});
  return series;
}

}  // namespace

control::MetricsSource model_metrics() {
  control::MetricsSource source;
  source.url = "http://prometheus.example";
  source.window_seconds = kWindowSeconds;
  source.queries = {"samples",      "compute",         "wait",  "batches", "depth",   "capacity", "worker_samples",
                    "worker_cores", "workers_at_work", "bytes", "read",    "blocked", "memory",   "remaining",
                    "age",          "scrapes"};
  return source;
}

Result<http::Response> PrometheusModel::send(const http::Request& request, std::chrono::milliseconds, std::stop_token) {
  if (fault_ == MetricsFault::kGone) return unavailable("connection refused");
  if (fault_ == MetricsFault::kPage) return draw_error_page(random_);
  // The names of model_metrics() have no characters that would be encoded.
  const std::size_t begin = request.target.find("query=") + 6;
  const std::string query = request.target.substr(begin, request.target.find('&', begin) - begin);

  const double now = std::chrono::duration<double>(clock_.wall_now().time_since_epoch()).count();
  const double age = fault_ == MetricsFault::kStale ? kStaleAgeSeconds : kAgeSeconds;
  Json result = Json::array();
  if (fault_ != MetricsFault::kAbsent)
    for (const MeasuredJob& job : measured(now - age))
      for (const Series& series : series_of(query, job, age)) {
        Json labels = {{"namespace", job.key.namespace_}, {"training_job", job.key.name}};
        if (!series.placement.empty()) labels["placement"] = series.placement;
        const std::string value = fault_ == MetricsFault::kNan ? "NaN" : text_of(series.value);
        result.push_back({{"metric", std::move(labels)}, {"value", {now, value}}});
      }
  const Json answer = {{"status", "success"}, {"data", {{"resultType", "vector"}, {"result", std::move(result)}}}};
  std::string body = answer.dump();
  if (fault_ == MetricsFault::kDamaged) body = draw_damaged_body(random_, std::move(body));
  return http::Response{200, {}, std::move(body)};
}

// The queries of one decision ask of the same state.
const std::vector<MeasuredJob>& PrometheusModel::measured(double at_seconds) {
  const std::pair asked(server_.revision(), at_seconds);
  if (std::exchange(measured_state_, asked) == asked) return measured_;
  measured_.clear();
  const kube::Store::Objects pods = server_.all(kube::kPods);
  for (const auto& [key, job] : server_.all(kube::kJobs)) {
    const auto physics = workload_.physics.find(key.name);
    if (physics == workload_.physics.end() || api::TrainerJob(*job).ready() == 0) continue;
    scheduler::testing::FluidJob fluid = physics->second.fluid;
    double remote_millicores = 0;
    std::int64_t feeder_millicores = 0;
    int workers = 0;
    for (const auto& [pod_key, object] : pods) {
      const api::Pod pod(*object);
      if (const auto feeder = api::view_feeder(*object); feeder && pod.job() == key.name && pod.serves())
        feeder_millicores += feeder->in_force.request_millicores;
      if (!pod.is_worker() || pod.job() != key.name || !pod.ready()) continue;
      remote_millicores += static_cast<double>(pod.request_millicores());
      ++workers;
    }
    if (workload_.resizes_pods) fluid.local_cores = static_cast<double>(feeder_millicores) / 1000;
    measured_.push_back(
        {key, fluid.steady(remote_millicores / 1000, at_seconds, kWindowSeconds), workers, &physics->second});
  }
  return measured_;
}

}  // namespace sluice::simulation
