#include "bench/scale/pod_counter.h"

#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "src/kube/informer.h"

namespace sluice::bench {
namespace {

using kube::Json;

constexpr auto kPeriod = std::chrono::milliseconds(100);

struct Counts {
  std::int64_t pods = 0;
  std::int64_t ready = 0;
  std::int64_t created = 0;
  std::int64_t deleted = 0;
  bool operator==(const Counts&) const = default;
};

bool is_ready(const kube::ObjectPointer& pod) { return pod && pod->value("ready", false); }

// Of a pod only its identity and whether it is ready is kept: ten thousand of them must not weigh on the machine.
void keep_readiness(Json& pod) {
  bool ready = false;
  for (const Json& condition : pod.value("/status/conditions"_json_pointer, Json::array()))
    if (condition.value("type", "") == "Ready") ready = condition.value("status", "") == "True";
  pod.erase("spec");
  pod.erase("status");
  pod["ready"] = ready;
}

}  // namespace

Result<void> count_pods(const kube::Client& client, const Clock& clock, const std::string& name_space,
                        const std::string& label_selector) {
  std::mutex mutex;
  Counts counts;
  kube::ReflectorOptions options;
  options.namespace_ = name_space;
  options.label_selector = label_selector;
  options.trim = keep_readiness;
  kube::Informer informer(client, clock, kube::system_random(), kube::kPods, options);
  informer.add_handler([&](const kube::Change& change) {
    std::lock_guard lock(mutex);
    if (!change.before) ++counts.created, ++counts.pods;
    if (!change.after) ++counts.deleted, --counts.pods;
    counts.ready += is_ready(change.after) - is_ready(change.before);
  });
  informer.start();
  const std::jthread printer([&](std::stop_token stop) {
    Counts printed{-1};
    do {
      std::unique_lock lock(mutex);
      const Counts now = counts;
      lock.unlock();
      if (now == printed || !informer.has_synced()) continue;
      printed = now;
      const double seconds = std::chrono::duration<double>(clock.wall_now().time_since_epoch()).count();
      std::cout << Json({{"seconds", seconds},
                         {"pods", now.pods},
                         {"ready", now.ready},
                         {"created", now.created},
                         {"deleted", now.deleted}})
                << std::endl;
    } while (clock.sleep_for(kPeriod, stop));
  });
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  return {};
}

}  // namespace sluice::bench
