// A batch as every link describes it: client to feeder, feeder to worker, parent to Python child. Each link adds only
// how it finds the pipeline and how it names the answer.
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::transport {

// Which batch is wanted. With the pipeline these are all arguments of the pure function that makes it.
struct BatchSpec {
  std::uint64_t seq = 0;  // of the batch in its stream; chooses the virtual worker
  std::uint64_t base_seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // of the first sample, counted in samples from the start of the epoch
  std::vector<std::int64_t> indices;
};

struct TensorDescription {
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;  // bytes; the message says relative to which start
  std::uint64_t nbytes = 0;
};

// What one operation has cost in the making of one batch.
struct OpCost {
  std::string op;
  double seconds = 0;       // CPU
  std::uint64_t bytes = 0;  // that it has made; 0: not known

  bool operator==(const OpCost&) const = default;
};

// A batch has at most so many; an executor that names more speaks nonsense.
inline constexpr std::size_t kOpCostsMax = 64;

}  // namespace sluice::transport
