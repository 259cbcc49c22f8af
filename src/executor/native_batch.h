// Computes native batches.
//
// Two shapes. The feeder's own threads expand every sample at once into its place in the batch's slot. A worker makes
// chunks of whole samples as uint8 pixels, each about kChunkBytes. So sending overlaps with computing, and a batch need
// not fit in a worker's memory. Thread safety: functions are reentrant; NativeScratch belongs to one thread.
#pragma once

#include <functional>
#include <stop_token>

#include "src/executor/batch.h"
#include "src/pipeline/file_reader.h"
#include "src/pipeline/native_pipeline.h"

namespace sluice::executor {

inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

// The buffers of one executing thread.
struct NativeScratch {
  pipeline::Workspace workspace;
  std::vector<std::uint8_t> pixels;
  pipeline::OpCosts costs;                           // without those that the workspace still holds
  pipeline::SampledStopwatch stopwatches_in_memory;  // of samples without a file

  // Totals since the last call, of samples that failed, too.
  pipeline::OpCosts take_costs();
};

// The tensors of a batch of `samples`, offsets relative to the slot.
std::vector<transport::TensorDescription> native_tensors(const Pipeline& pipeline, std::size_t samples);

// What the messages say of them: operations that have neither cost nor made anything are left out.
std::vector<transport::OpCost> costs_by_op(const pipeline::OpCosts& costs);
// The wait for what was read; none if nothing was read.
std::optional<double> blocked_seconds(const pipeline::OpCosts& costs);

// Writes the labels tensor of the batch into its slot. REQUIRES: indices were accepted by check_indices().
void write_labels(const BatchRequest& request, std::span<std::byte> slot);

// Turns the wire form of sample `i` of a batch of `samples` into its images in the slot. Returns the bytes of these.
std::size_t finish_in_slot(const pipeline::NativePipeline& native, std::span<const std::uint8_t> wire,
                           std::size_t samples, std::size_t i, std::span<std::byte> slot);

// Begins to read what the batch is made of; null where that is at hand, and for batches that are not native.
std::shared_ptr<pipeline::ReadAhead> read_ahead(const BatchRequest& request);

// Errors: InvalidArgument "indices[3]: 99 is outside the data set of 10 samples".
Result<void> check_indices(const BatchRequest& request);

// Writes the images of sample `i` into `slot` (batch_bytes of it). Several threads may write different samples.
// Errors name the file and the place in the batch. REQUIRES: indices were accepted by check_indices().
Result<void> make_native_sample(const BatchRequest& request, std::size_t i, std::span<std::byte> slot,
                                NativeScratch& scratch);

struct PixelChunk {
  transport::ArenaSlot slot;
  std::size_t first_sample = 0;
  std::size_t samples = 0;
  std::size_t bytes = 0;
  bool last = false;
};

// Hands chunks to `emit` in order; the last one has `last` set. Chunk memory comes from `arena`: when no reader takes
// chunks away, this blocks. Errors as above; Cancelled between samples.
Result<void> run_native_chunks(const BatchRequest& request, transport::Arena& arena, NativeScratch& scratch,
                               const std::function<bool()>& cancelled, const std::stop_token& stop,
                               const std::function<void(PixelChunk)>& emit);

}  // namespace sluice::executor
