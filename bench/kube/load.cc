#include <nlohmann/json.hpp>

#include "bench/kube/modes.h"
#include "src/base/in_parallel.h"

namespace sluice::bench {
namespace {

using kube::Json;

constexpr const char* kManager = "sluice-kube-bench";

std::string name_of(int number) { return "bench-" + std::to_string(number); }

// What a training worker's pod looks like to a watcher once it runs: 4 KiB, a fifth of it managedFields.
Json pod(int number) {
  Json environment = Json::array();
  for (int i = 0; i < 12; ++i)
    environment.push_back(
        {{"name", "SETTING_" + std::to_string(i)}, {"value", "value of setting " + std::to_string(i)}});
  Json container{
      {"name", "worker"},
      {"image", "registry.example/team/training-worker:2026.11"},
      {"command", {"/opt/worker/bin/worker", "--listen", "0.0.0.0:7471"}},
      {"env", environment},
      {"resources", {{"requests", {{"cpu", "500m"}, {"memory", "256Mi"}}}, {"limits", {{"cpu", "500m"}}}}},
      {"ports", {{{"name", "grpc"}, {"containerPort", 7471}}, {{"name", "metrics"}, {"containerPort", 9464}}}},
      {"readinessProbe", {{"httpGet", {{"path", "/readyz"}, {"port", "metrics"}}}, {"periodSeconds", 2}}},
      {"securityContext", {{"allowPrivilegeEscalation", false}, {"runAsNonRoot", true}, {"runAsUser", 1000}}},
      {"volumeMounts", {{{"name", "scratch"}, {"mountPath", "/scratch"}}}}};
  return {
      {"metadata",
       {{"name", name_of(number)},
        {"labels", {{"app.kubernetes.io/name", "bench"}, {"sluice.dev/job", "job-" + std::to_string(number % 1000)}}},
        {"annotations", {{"prometheus.io/scrape", "true"}, {"prometheus.io/port", "9464"}}}}},
      {"spec",
       {{"schedulerName", "nobody"},
        {"automountServiceAccountToken", false},
        {"containers", {container}},
        {"volumes", {{{"name", "scratch"}, {"emptyDir", Json::object()}}}}}}};
}

}  // namespace

Result<void> create_pods(const kube::Client& client, const std::string& name_space, int count, int threads) {
  return in_parallel(count, threads, [&](int n) -> Result<void> {
    const auto created = client.create(kube::kPods, name_space, pod(n), kManager);
    return created.ok() || created.error().code() == ErrorCode::kAlreadyExists ? Result<void>() : created.error();
  });
}

Result<void> update_pods(const kube::Client& client, const Clock& clock, const std::string& name_space, int count,
                         int rate, std::chrono::seconds time, int threads) {
  const Clock::TimePoint began = clock.now();
  return in_parallel(static_cast<int>(rate * time.count()), threads, [&](int n) -> Result<void> {
    const auto due = began + std::chrono::nanoseconds(std::int64_t{1000000000} * n / rate);
    // What cannot be sent in time is left out: the rate that was reached shows in the number of updates seen.
    if (clock.now() > began + time) return {};
    clock.sleep_until(due, {});
    const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(clock.wall_now().time_since_epoch()).count();
    const Json patch{{"metadata", {{"annotations", {{std::string(kSentAnnotation), std::to_string(now)}}}}}};
    const auto done = client.merge_patch(kube::kPods, {name_space, name_of(n % count)}, patch, kManager);
    return done.ok() ? Result<void>() : done.error();
  });
}

}  // namespace sluice::bench
