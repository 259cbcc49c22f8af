// Prometheus in a simulation: answers the operator's queries from the jobs' physics at this moment.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "operator/config.h"
#include "operator/fault_simulation/random.h"
#include "operator/fault_simulation/virtual_clock.h"
#include "operator/fault_simulation/workload.h"
#include "src/http/transport.h"
#include "src/kube/fake/api_server.h"

namespace sluice::simulation {

// The queries that the model understands: the names of its answers.
control::MetricsSource model_metrics();

// The faults of the answers. kPage: something else answers; kDamaged: an answer is cut or of another shape.
enum class MetricsFault { kNone, kGone, kNan, kStale, kAbsent, kPage, kDamaged };
inline constexpr std::uint64_t kMetricsFaults = 6;  // but for kNone

// A job whose trainer runs.
struct MeasuredJob {
  kube::ObjectKey key;
  scheduler::Measurement measurement;
  int workers = 0;
  const Physics* physics = nullptr;
};

// Thread safety: none.
class PrometheusModel final : public http::Transport {
 public:
  // REQUIRES: all references outlive the model.
  PrometheusModel(kube::fake::ApiServer& server, const VirtualClock& clock, Random& random, const Workload& workload)
      : server_(server), clock_(clock), random_(random), workload_(workload) {}

  void set_fault(MetricsFault fault) { fault_ = fault; }

  Result<http::Response> send(const http::Request& request, std::chrono::milliseconds timeout,
                              std::stop_token stop) override;
  Result<http::Response> stream(const http::Request&, http::ByteSink&, std::chrono::milliseconds,
                                std::stop_token) override {
    return internal_error("Prometheus streams nothing");
  }

 private:
  const std::vector<MeasuredJob>& measured(double at_seconds);

  kube::fake::ApiServer& server_;
  const VirtualClock& clock_;
  Random& random_;
  const Workload& workload_;
  MetricsFault fault_ = MetricsFault::kNone;
  std::pair<std::uint64_t, double> measured_state_;  // the server's revision, and the time, of:
  std::vector<MeasuredJob> measured_;
};

}  // namespace sluice::simulation
