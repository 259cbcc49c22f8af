// How many workers tf.data service's AutoScaler reports as optimal.
//
// Source: TensorFlow, tensorflow/core/data/service/auto_scaler.h; Audibert et al., "tf.data service: A Case for
// Disaggregating ML Input Data Processing", SoCC'23.
//
//   optimal = max(1, ceil(sum of the consumers' rates / mean of the workers' throughputs))
//   A rate further than one standard deviation from the mean of its kind is replaced by the median.
//
// Thread safety: pure function on values.
#pragma once

#include <optional>
#include <vector>

namespace sluice::scheduler {

// Elements per second: what each consumer would consume, and what each worker delivers when always at work. None: one
// of them is empty.
std::optional<int> tfdata_optimal_workers(const std::vector<double>& consumption_rates,
                                          const std::vector<double>& worker_throughputs);

}  // namespace sluice::scheduler
