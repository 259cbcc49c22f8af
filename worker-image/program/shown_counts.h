// Numbers that the data plane counts by itself, as metrics.
//
// Thread safety: none. The registry itself may be scraped at any time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace prometheus {
class Counter;
class Gauge;
class Registry;
}  // namespace prometheus

namespace sluice::program {

class ShownCounts {
 public:
  using Labels = std::map<std::string, std::string>;
  using Count = std::atomic<std::uint64_t>;

  // `constant`: of each family; `shared`: of each series, beside its own. REQUIRES: registry and counts outlive this.
  ShownCounts(prometheus::Registry& registry, Labels constant, Labels shared = {})
      : registry_(registry), constant_(std::move(constant)), shared_(std::move(shared)) {}

  void counter(const char* name, const char* help, Labels own, const Count& count);
  void gauge(const char* name, const char* help, Labels own, const Count& count);
  void gauge(const char* name, const char* help, Labels own, std::function<std::uint64_t()> read);

  // Brings the metrics up to date. To be called every second.
  void tick();

 private:
  struct Counted {
    prometheus::Counter* series;
    const Count* count;
  };
  struct Shown {
    prometheus::Gauge* series;
    std::function<std::uint64_t()> read;
  };

  prometheus::Registry& registry_;
  const Labels constant_;
  const Labels shared_;
  std::vector<Counted> counters_;
  std::vector<Shown> gauges_;
};

}  // namespace sluice::program
