// sluice-memory-bench: how much memory the operator needs for a cluster of 10,000 workers, without a cluster.
//
// The whole control plane runs, with its threads, against a Transport that tells it of a stored cluster
// (stored_cluster.h): one kind after the other, so that each kind's bytes can be told. Then half of the workers go and
// come back, with the changes that kube-scheduler and kubelets make. What the operator writes is answered and
// forgotten. Prints JSON. Bytes are the allocator's: what is in use, and what is resident.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "bench/scale/stored_cluster.h"
#include "operator/api/network_policy.h"
#include "operator/control_plane.h"
#include "operator/process_memory.h"
#include "src/base/flags.h"
#include "src/kube/timestamp.h"

namespace sluice::bench {
namespace {

using kube::Json;
using Stage = StoredCluster::Stage;

const std::vector<Flag> kFlags = {{"jobs", "N", "1000", "with one trainer each"},
                                  {"workers", "N", "10", "of each job, at most 10"},
                                  {"nodes", "N", "1250", ""},
                                  {"images", "N", "50", "that each node names"},
                                  {"strangers", "N", "5", "other pods on each node"},
                                  {"out", "FILE", "", "where the JSON goes, too"}};

constexpr double kMebibyte = 1 << 20;

double used_mebibytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / kMebibyte;
}

double resident_mebibytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / kMebibyte;
}

double rounded(double value) { return std::round(10 * value) / 10; }

Json memory_now() { return {{"used_mib", rounded(used_mebibytes())}, {"resident_mib", rounded(resident_mebibytes())}}; }

// An API server that shows a stored cluster.
class StoredServer final : public http::Transport {
 public:
  explicit StoredServer(const StoredCluster& cluster) : cluster_(cluster) {}

  Result<http::Response> send(const http::Request& request, std::chrono::milliseconds, std::stop_token) override {
    ++requests_;
    if (request.method != "GET") return http::Response{200, {}, "{}"};
    if (const std::size_t at = request.target.find("/secrets/"); at != std::string::npos)
      return http::Response{200, {}, cluster_.secret_text(request.target.substr(at + 9))};
    return http::Response{200, {}, R"({"resources": []})"};
  }

  // One collection at a time: the difference that it makes is its own.
  Result<http::Response> stream(const http::Request& request, http::ByteSink& sink, std::chrono::milliseconds,
                                std::stop_token stop) override {
    const std::string path = request.target.substr(0, request.target.find('?'));
    const std::string plural = path.substr(path.rfind('/') + 1);
    {
      std::lock_guard turn(mutex_);
      const double before = used_mebibytes();
      int count = 0;
      for (const kube::Resource& resource : kKinds) {
        if (resource.plural != plural) continue;
        count = cluster_.count_of(resource);
        for (int index = 0; index < count; ++index)
          SLUICE_TRY_VOID(tell(sink, "ADDED", cluster_.text_of(resource, index, kStoredVersion + index)));
      }
      const std::string end =
          R"({"metadata": {"annotations": {"k8s.io/initial-events-end": "true"}, "resourceVersion": ")" +
          std::to_string(next_version()) + R"("}})";
      SLUICE_TRY_VOID(tell(sink, "BOOKMARK", end));
      const double used = used_mebibytes() - before;
      kinds_[plural] = {{"objects", count}, {"used_mib", rounded(used)}};
      if (count > 0) kinds_[plural]["bytes_each"] = std::llround(used * kMebibyte / count);
    }
    if (plural == "pods") return tell_changes(sink, stop);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [] { return false; });
    return unavailable("stopped");
  }

  // All workers with these numbers go, or come. Returns when that has been told.
  void remove(int from, int to) { ask({false, from, to}); }
  void bring_back(int from, int to) { ask({true, from, to}); }

  Json kinds() const {
    std::lock_guard lock(mutex_);
    return kinds_;
  }
  int requests() const { return requests_; }

 private:
  static constexpr kube::Resource kKinds[] = {kube::kTrainingJobs, kube::kDataWorkerPools, kube::kJobs,
                                              kube::kServices,     api::kNetworkPolicies,  kube::kPods,
                                              kube::kNodes};

  struct Change {
    bool is_new = false;
    int from = 0, to = 0;
  };

  // As each object was stored: a second list, which a replica wants when it begins to lead, shows the same.
  static constexpr std::int64_t kStoredVersion = 900'000'000;
  std::int64_t next_version() { return 1'000'000'000 + ++versions_; }

  static Result<void> tell(http::ByteSink& sink, const char* type, const std::string& object) {
    return sink.on_bytes(R"({"type": ")" + std::string(type) + R"(", "object": )" + object + "}\n");
  }

  void ask(Change change) {
    std::unique_lock lock(mutex_);
    change_ = change;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !change_; });
  }

  Result<http::Response> tell_changes(http::ByteSink& sink, std::stop_token stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return change_.has_value(); })) {
      const std::vector<std::pair<const char*, Stage>> states =
          change_->is_new ? std::vector<std::pair<const char*, Stage>>{{"ADDED", Stage::kPending},
                                                                       {"MODIFIED", Stage::kBound},
                                                                       {"MODIFIED", Stage::kReady}}
                          : std::vector<std::pair<const char*, Stage>>{{"DELETED", Stage::kReady}};
      for (const auto& [type, stage] : states)
        for (int job = 0; job < cluster_.size().jobs; ++job)
          for (int worker = change_->from; worker < change_->to; ++worker)
            SLUICE_TRY_VOID(tell(sink, type, cluster_.worker_text(job, worker, next_version(), stage)));
      change_.reset();
      changed_.notify_all();
    }
    return unavailable("stopped");
  }

  const StoredCluster& cluster_;
  std::atomic<int> requests_ = 0;
  std::atomic<std::int64_t> versions_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Change> change_;
  Json kinds_;
};

// Until nothing waits any more for two seconds, and the decision loop has seen it twice: it keeps what it saw last.
void settle(control::ControlPlane& plane, const Clock& clock) {
  const auto deadline = clock.now() + std::chrono::minutes(5);
  const auto round = [&] { return plane.parts().board.last_round(); };
  auto last = round();
  for (int quiet = 0, decisions = 0; (quiet < 20 || decisions < 2) && clock.now() < deadline;) {
    clock.sleep_for(std::chrono::milliseconds(100), {});
    const auto depths = plane.operation().queue_depths;
    const bool waits = std::any_of(depths.begin(), depths.end(), [](const auto& depth) { return depth.second > 0; });
    quiet = waits ? 0 : quiet + 1;
    if (const auto now = round(); now != last) {
      last = now;
      ++decisions;
    }
  }
}

Result<Json> measure(const ClusterSize& size) {
  control::share_heaps();
  const SystemClock clock;
  SLUICE_TRY(const StoredCluster cluster, StoredCluster::make(size));
  const auto server = std::make_shared<StoredServer>(cluster);
  const kube::Client client(server, clock);
  control::Config config;
  config.image = "registry.example/sluice:1.0.0";
  config.decision_interval = std::chrono::seconds(1);
  double load = 0;
  getloadavg(&load, 1);
  Json report = {{"date", kube::format_time(clock.wall_now())},
                 {"load_average_before", load},
                 {"jobs", size.jobs},
                 {"workers", size.jobs * size.workers_per_job},
                 {"nodes", size.nodes},
                 {"images_per_node", size.images_per_node},
                 {"other_pods", size.nodes * size.strangers_per_node}};
  report["empty"] = memory_now();
  control::ControlPlane plane(config, client, nullptr, clock, kube::system_random(), "bench");
  plane.watch();
  while (!plane.ready()) clock.sleep_for(std::chrono::milliseconds(50), {});
  report["kinds"] = server->kinds();
  report["all_seen"] = memory_now();
  plane.lead();
  settle(plane, clock);
  report["at_rest"] = memory_now();
  const int half = size.workers_per_job / 2;
  server->remove(half, size.workers_per_job);
  report["halved_at_once"] = memory_now();
  settle(plane, clock);
  report["halved"] = memory_now();
  server->bring_back(half, size.workers_per_job);
  report["doubled_at_once"] = memory_now();
  settle(plane, clock);
  report["doubled"] = memory_now();
  report["requests"] = server->requests();
  malloc_trim(0);
  report["doubled_without_free_pages"] = memory_now();
  plane.stop();
  return report;
}

Result<void> run(const Flags& flags) {
  ClusterSize size;
  for (const auto& [name, out] : {std::pair{"jobs", &size.jobs},
                                  {"workers", &size.workers_per_job},
                                  {"nodes", &size.nodes},
                                  {"images", &size.images_per_node},
                                  {"strangers", &size.strangers_per_node}}) {
    SLUICE_TRY(const auto number, flags.integer(name));
    *out = static_cast<int>(number);
  }
  SLUICE_TRY(const Json report, measure(size));
  const std::string text = report.dump(1) + "\n";
  std::cout << text;
  if (!flags.text("out").empty()) std::ofstream(flags.text("out")) << text;
  return {};
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  const auto flags = sluice::Flags::parse(sluice::bench::kFlags, argc, argv);
  const auto done = flags.ok() ? sluice::bench::run(*flags) : flags.error();
  if (!done.ok()) std::cerr << done.error().to_string() << "\n";
  return done.ok() ? 0 : 1;
}
