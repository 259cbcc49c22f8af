#include "worker-image/program/shown_counts.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace sluice::program {

void ShownCounts::counter(const char* name, const char* help, Labels own, const Count& count) {
  own.insert(shared_.begin(), shared_.end());
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Labels(constant_).Register(registry_);
  counters_.push_back({&family.Add(own), &count});
}

void ShownCounts::gauge(const char* name, const char* help, Labels own, const Count& count) {
  gauge(name, help, std::move(own), [&count] { return count.load(); });
}

void ShownCounts::gauge(const char* name, const char* help, Labels own, std::function<std::uint64_t()> read) {
  own.insert(shared_.begin(), shared_.end());
  auto& family = prometheus::BuildGauge().Name(name).Help(help).Labels(constant_).Register(registry_);
  gauges_.push_back({&family.Add(own), std::move(read)});
}

void ShownCounts::tick() {
  for (const auto& [series, count] : counters_) series->Increment(static_cast<double>(*count) - series->Value());
  for (const auto& [series, read] : gauges_) series->Set(static_cast<double>(read()));
}

}  // namespace sluice::program
