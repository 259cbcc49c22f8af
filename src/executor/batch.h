// The request to an executor and its answer, alike for all executors.
//
// A batch is a pure function of (pipeline fingerprint, indices, seeds): the same request gives the same bytes on any
// executor. So a lost one can be asked again elsewhere. A virtual worker's batch depends on those that it made before,
// too; they are remembered, and made again where it is lost (docs/designs/sticky-workers.md). Thread safety: values;
// PipelineHandle and BatchRequest are shared as pointers to const.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/result.h"
#include "src/executor/wait_share.h"
#include "src/transport/arena.h"
#include "src/transport/local_message.h"
#include "src/transport/sealed_memory.h"

namespace sluice::pipeline {
class FileReader;
class NativePipeline;
}  // namespace sluice::pipeline

namespace sluice::executor {

enum class ExecutorKind { kNative, kPython };

inline std::string_view to_string(ExecutorKind kind) { return kind == ExecutorKind::kNative ? "native" : "python"; }

struct Pipeline {
  std::uint64_t number = 0;  // within this process
  std::uint64_t owner = 0;   // python: a process that has made a batch makes none of another owner's
  std::string fingerprint;   // sha256 hex of executor and blob
  ExecutorKind kind = ExecutorKind::kNative;
  transport::SealedMemoryHandle blob;  // native: specification; python: description (protocols.md sections 5 and 6)
  std::string python;                  // interpreter; python only
  std::uint32_t num_workers = 0;
  std::shared_ptr<const pipeline::NativePipeline> native;                  // set for kNative
  const std::shared_ptr<WaitShare> waits = std::make_shared<WaitShare>();  // of its batches in this process
};
using PipelineHandle = std::shared_ptr<const Pipeline>;

// The changes of a Python pipeline since it was described (docs/designs/protocols.md section 6). Opaque here.
struct PipelineState {
  std::uint64_t number = 0;  // within this process; never 0
  std::string blob;
};
using StateHandle = std::shared_ptr<const PipelineState>;

std::string pipeline_fingerprint(ExecutorKind kind, std::string_view blob);

// Checks `blob` and computes the fingerprint. A native pipeline reads its files through `files` (null: the file
// system). Errors: InvalidArgument naming the field of a native specification.
Result<PipelineHandle> make_pipeline(std::uint64_t number, ExecutorKind kind, transport::SealedMemoryHandle blob,
                                     std::string python, std::uint32_t num_workers,
                                     std::shared_ptr<const pipeline::FileReader> files = nullptr);
// The same for an owner (0: anyone), with a fingerprint that was computed before: of a large blob it takes long.
Result<PipelineHandle> make_pipeline(std::uint64_t number, ExecutorKind kind, transport::SealedMemoryHandle blob,
                                     std::string python, std::uint32_t num_workers, std::string fingerprint,
                                     std::shared_ptr<const pipeline::FileReader> files, std::uint64_t owner);

// A pipeline has at most so many bytes, wherever it comes from.
inline constexpr std::size_t kPipelineBytesMax = std::size_t{1} << 30;

// The virtual workers of one pass over a data set that keeps state: what each of them has made, oldest first, in the
// form of python/sluice/executor/history.py. Opaque here. Of portable ones the requests say it: nothing is kept. Thread
// safety: a worker's entry belongs to the thread that runs its request; Dispatch never gives out two at a time.
struct VirtualWorkers {
  explicit VirtualWorkers(std::uint32_t count, bool is_portable = false, std::uint64_t pass = 0)
      : pass(pass), is_portable(is_portable), made(count) {}
  const std::uint64_t pass;  // within this process
  const bool is_portable;
  std::vector<std::string> made;
};

struct BatchRequest : transport::BatchSpec {
  PipelineHandle pipeline;
  StateHandle state;                                // null: the pipeline is as it was described
  std::shared_ptr<VirtualWorkers> virtual_workers;  // null: any executor may make it, in any order
  std::string history;  // what the virtual worker has made elsewhere; empty: nothing, or it is known here

  std::uint32_t virtual_worker() const {
    return static_cast<std::uint32_t>(seq % std::max<std::uint32_t>(1, pipeline->num_workers));
  }
};
using RequestHandle = std::shared_ptr<const BatchRequest>;

// A finished batch. Tensor offsets are relative to the slot.
struct Batch {
  transport::ArenaSlot slot;
  std::vector<transport::TensorDescription> tensors;
  std::string structure;                       // python: pickled structure; native: empty
  double busy_seconds = 0;                     // CPU
  std::optional<double> blocked_seconds;       // neither running nor waiting for a CPU; none: it is not known
  std::vector<transport::OpCost> ops = {};     // of the busy seconds, by operation
  bool holds_files = false;                    // python: its process keeps files open that it has opened for batches
  std::vector<transport::KeptCost> kept = {};  // python: of the functions whose results may be kept
  bool from_memory = false;                    // python: nothing was read for it; false: perhaps
};

// Why there is no batch. `exception` is the pickled Python exception, if there is one.
struct BatchFailure {
  transport::Failure failure;
  std::string exception;
  // Not the data's or the user's fault but this executor's (no interpreter, no memory, cancelled): elsewhere it may
  // work.
  bool executor_fault = false;
};

// Cancelled: the batch is not to be finished.
Error no_longer_wanted();

// An Error in Python's clothes: NotFound becomes FileNotFoundError, DataLoss OSError, ...
BatchFailure to_failure(const Error& error);

}  // namespace sluice::executor
