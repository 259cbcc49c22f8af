// What an executor is asked for and what it answers, whatever executes it and wherever.
//
// A batch is a pure function of (pipeline fingerprint, indices, seeds): the same request gives the same bytes on any
// executor, which is why a lost one can simply be asked again elsewhere.
// Thread safety: values; PipelineHandle and BatchRequest are shared as pointers to const.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/transport/arena.h"
#include "src/transport/local_message.h"

namespace sluice::pipeline {
class NativePipeline;
}

namespace sluice::executor {

enum class ExecutorKind { kNative, kPython };

inline std::string_view to_string(ExecutorKind kind) { return kind == ExecutorKind::kNative ? "native" : "python"; }

struct Pipeline {
  std::uint64_t number = 0;  // within this process
  std::string fingerprint;   // sha256 hex of executor and blob
  ExecutorKind kind = ExecutorKind::kNative;
  std::string blob;    // native: specification JSON; python: cloudpickle
  std::string python;  // interpreter; python only
  std::uint32_t num_workers = 0;
  std::shared_ptr<const pipeline::NativePipeline> native;  // set for kNative
};
using PipelineHandle = std::shared_ptr<const Pipeline>;

std::string pipeline_fingerprint(ExecutorKind kind, std::string_view blob);

// Checks `blob` and computes the fingerprint. Errors: InvalidArgument naming the field of a native specification.
Result<PipelineHandle> make_pipeline(std::uint64_t number, ExecutorKind kind, std::string blob, std::string python,
                                     std::uint32_t num_workers);

struct BatchRequest {
  PipelineHandle pipeline;
  std::uint64_t stream = 0;
  std::uint64_t seq = 0;
  std::uint64_t base_seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
  std::vector<std::int64_t> indices;
};
using RequestHandle = std::shared_ptr<const BatchRequest>;

// A finished batch. Tensor offsets are relative to the slot.
struct Batch {
  transport::ArenaSlot slot;
  std::vector<transport::TensorDescription> tensors;
  std::string structure;    // python: pickled structure; native: empty
  double busy_seconds = 0;  // CPU
};

// Why there is no batch. `exception` is the pickled Python exception, if there is one.
struct BatchFailure {
  transport::Failure failure;
  std::string exception;
  // Not the data's or the user's fault but this executor's (no interpreter, no memory, cancelled): elsewhere it may
  // work.
  bool executor_fault = false;
};

// An Error in Python's clothes: NotFound becomes FileNotFoundError, DataLoss OSError, ...
BatchFailure to_failure(const Error& error);

}  // namespace sluice::executor
