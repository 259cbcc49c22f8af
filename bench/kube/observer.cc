#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>
#include <limits>
#include <mutex>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/kube/modes.h"
#include "src/kube/informer.h"

namespace sluice::bench {
namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double size = 0;
  double resident = 0;
  statm >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

double elapsed(Clock::TimePoint since, const Clock& clock) {
  return std::chrono::duration<double>(clock.now() - since).count();
}

// How late updates are seen.
class Lags {
 public:
  void add(double seconds) {
    std::lock_guard lock(mutex_);
    lags_.push_back(seconds);
  }

  nlohmann::json summary() {
    std::lock_guard lock(mutex_);
    std::sort(lags_.begin(), lags_.end());
    const auto at = [this](double share) {
      return lags_.empty() ? 0 : lags_[static_cast<std::size_t>(share * static_cast<double>(lags_.size() - 1))];
    };
    return {{"updates", lags_.size()}, {"lag_p50_seconds", at(0.5)}, {"lag_p99_seconds", at(0.99)}};
  }

 private:
  std::mutex mutex_;
  std::vector<double> lags_;
};

std::int64_t sent_at(const kube::Json& pod) {
  const auto metadata = pod.find("metadata");
  const auto annotations = metadata->find("annotations");
  if (annotations == metadata->end()) return 0;
  const auto sent = annotations->find(kSentAnnotation);
  if (sent == annotations->end()) return 0;
  const auto& text = sent->get_ref<const std::string&>();
  std::int64_t nanos = 0;
  std::from_chars(text.data(), text.data() + text.size(), nanos);
  return nanos;
}

}  // namespace

Result<void> observe(const kube::Client& client, const Clock& clock, const std::string& name_space,
                     std::chrono::seconds idle) {
  Lags lags;
  const Clock::TimePoint began = clock.now();
  kube::ReflectorOptions options;
  options.namespace_ = name_space;
  kube::Informer informer(client, clock, kube::system_random(), kube::kPods, options);
  informer.add_handler([&](const kube::Change& change) {
    if (change.is_initial || !change.before || !change.after) return;
    const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(clock.wall_now().time_since_epoch()).count();
    if (const std::int64_t sent = sent_at(*change.after); sent != 0) lags.add(static_cast<double>(now - sent) * 1e-9);
  });
  const double cpu_before = cpu_seconds();
  informer.start();
  informer.wait_for_sync({});
  nlohmann::json line{{"objects", informer.store().size()},
                      {"sync_seconds", elapsed(began, clock)},
                      {"sync_cpu_seconds", cpu_seconds() - cpu_before},
                      {"resident_mib_at_sync", resident_mib()}};
  std::cout << line.dump() << std::endl;

  double cpu = cpu_seconds();
  const Clock::TimePoint quiet = clock.now();
  clock.sleep_for(idle, {});
  line = {{"idle_cpu_percent", 100 * (cpu_seconds() - cpu) / std::max(elapsed(quiet, clock), 1e-9)},
          {"resident_mib", resident_mib()}};
  std::cout << line.dump() << std::endl;

  cpu = cpu_seconds();
  std::cin.ignore(std::numeric_limits<std::streamsize>::max());
  line = lags.summary();
  line["update_cpu_seconds"] = cpu_seconds() - cpu;
  line["resident_mib"] = resident_mib();
  std::cout << line.dump() << std::endl;
  return {};
}

}  // namespace sluice::bench
