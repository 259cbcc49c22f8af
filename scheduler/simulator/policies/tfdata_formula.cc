#include "scheduler/simulator/policies/tfdata_formula.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scheduler/simulator/policies/reading.h"

namespace sluice::scheduler {
namespace {

double sum(const std::vector<double>& rates) { return std::accumulate(rates.begin(), rates.end(), 0.0); }

std::vector<double> without_outliers(std::vector<double> rates) {
  std::vector<double> sorted = rates;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  const double mean = sum(rates) / static_cast<double>(rates.size());
  double squares = 0;
  for (const double rate : rates) squares += (rate - mean) * (rate - mean);
  const double deviation = rates.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(rates.size() - 1));
  for (double& rate : rates) {
    if (rate < mean - deviation || rate > mean + deviation) rate = median;
  }
  return rates;
}

}  // namespace

std::optional<int> tfdata_optimal_workers(const std::vector<double>& consumption_rates,
                                          const std::vector<double>& worker_throughputs) {
  if (consumption_rates.empty() || worker_throughputs.empty()) return std::nullopt;
  const double consumed = sum(without_outliers(consumption_rates));
  const double each = sum(without_outliers(worker_throughputs)) / static_cast<double>(worker_throughputs.size());
  if (each <= 0) return std::nullopt;
  return std::max(1, whole_count(consumed / each));
}

}  // namespace sluice::scheduler
