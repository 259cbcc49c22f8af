#include "src/executor/native_batch.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/pipeline/seeds.h"

namespace sluice::executor {
namespace {

Result<void> produce(const BatchRequest& request, std::size_t i, std::span<std::uint8_t> pixels,
                     NativeScratch& scratch) {
  const std::uint32_t seed = pipeline::sample_seed(request.base_seed, request.epoch, request.position + i);
  const auto result = request.pipeline->native->produce(request.indices[i], seed, pixels, scratch.workspace);
  if (result.ok()) return {};
  return result.error().with_context("sample " + std::to_string(i) + " of the batch, index " +
                                     std::to_string(request.indices[i]));
}

}  // namespace

pipeline::OpCosts NativeScratch::take_costs() {
  costs.add(workspace.take_costs());
  return std::exchange(costs, {});
}

std::vector<transport::OpCost> costs_by_op(const pipeline::OpCosts& costs) {
  std::vector<transport::OpCost> list;
  const auto add = [&](std::string_view op, const pipeline::Cost& cost) {
    if (cost.seconds > 0 || cost.bytes > 0) list.push_back({std::string(op), cost.seconds, cost.bytes});
  };
  add("read", costs.read);
  add("decode", costs.decode);
  add("resample", costs.resample);
  for (const auto& [op, cost] : costs.ops) {
    add(op, cost);
    // Under a name of its own, so that no message needs a field that older clients and feeders do not know.
    if (cost.spared_bytes > 0) list.push_back({std::string(op) + " spared", 0, cost.spared_bytes});
  }
  add("finish", costs.finish);
  return list;
}

std::optional<double> blocked_seconds(const pipeline::OpCosts& costs) {
  if (costs.read.seconds <= 0 && costs.read.bytes == 0) return std::nullopt;
  return costs.blocked_seconds;
}

std::vector<transport::TensorDescription> native_tensors(const Pipeline& pipeline, std::size_t samples) {
  std::vector<transport::TensorDescription> tensors;
  for (const pipeline::TensorLayout& layout : pipeline.native->schema().layout(samples)) {
    tensors.push_back({std::string(layout.dtype), layout.shape, layout.offset, layout.nbytes});
  }
  return tensors;
}

void write_labels(const BatchRequest& request, std::span<std::byte> slot) {
  const pipeline::NativePipeline& native = *request.pipeline->native;
  std::byte* out = slot.data() + native.schema().offset_of(native.view_count(), request.indices.size());
  for (const std::int64_t index : request.indices) {
    const std::int64_t label = native.label(index);
    std::memcpy(out, &label, sizeof(label));
    out += sizeof(label);
  }
}

std::size_t finish_in_slot(const pipeline::NativePipeline& native, std::span<const std::uint8_t> wire,
                           std::size_t samples, std::size_t i, std::span<std::byte> slot) {
  const pipeline::BatchSchema& schema = native.schema();
  std::size_t made_bytes = 0;
  for (std::size_t view = 0; view < native.view_count(); ++view) {
    const std::size_t bytes = schema.fields()[view].sample_bytes;
    native.finish(wire, view, slot.subspan(schema.offset_of(view, samples) + i * bytes, bytes));
    made_bytes += bytes;
  }
  return made_bytes;
}

std::shared_ptr<pipeline::ReadAhead> read_ahead(const BatchRequest& request) {
  const auto& native = request.pipeline->native;
  return native == nullptr ? nullptr : native->read_ahead(request.indices);
}

Result<void> check_indices(const BatchRequest& request) {
  const auto count = static_cast<std::int64_t>(request.pipeline->native->sample_count());
  for (std::size_t i = 0; i < request.indices.size(); ++i) {
    if (request.indices[i] >= 0 && request.indices[i] < count) continue;
    return invalid_argument("indices[" + std::to_string(i) + "]: " + std::to_string(request.indices[i]) +
                            " is outside the data set of " + std::to_string(count) + " samples");
  }
  return {};
}

Result<void> make_native_sample(const BatchRequest& request, std::size_t i, std::span<std::byte> slot,
                                NativeScratch& scratch) {
  const pipeline::NativePipeline& native = *request.pipeline->native;
  scratch.pixels.resize(native.wire_sample_bytes());
  SLUICE_TRY_VOID(produce(request, i, scratch.pixels, scratch));
  pipeline::Stopwatch stopwatch = native.has_files() ? pipeline::Stopwatch() : scratch.stopwatches_in_memory.next();
  const std::size_t bytes = finish_in_slot(native, scratch.pixels, request.indices.size(), i, slot);
  stopwatch.lap(scratch.costs.finish, bytes);
  return {};
}

Result<void> run_native_chunks(const BatchRequest& request, transport::Arena& arena, NativeScratch& scratch,
                               const std::function<bool()>& cancelled, const std::stop_token& stop,
                               const std::function<void(PixelChunk)>& emit) {
  SLUICE_TRY_VOID(check_indices(request));
  const std::size_t sample_bytes = request.pipeline->native->wire_sample_bytes();
  const std::size_t samples_per_chunk = std::max<std::size_t>(1, kChunkBytes / sample_bytes);
  const std::size_t total = request.indices.size();
  for (std::size_t first = 0; first < total || first == 0; first += samples_per_chunk) {
    PixelChunk chunk;
    chunk.first_sample = first;
    chunk.samples = std::min(samples_per_chunk, total - first);
    chunk.bytes = chunk.samples * sample_bytes;
    chunk.last = first + chunk.samples == total;
    SLUICE_TRY(chunk.slot, arena.allocate(chunk.bytes, stop));
    const std::span pixels(reinterpret_cast<std::uint8_t*>(chunk.slot.data()), chunk.bytes);
    for (std::size_t i = 0; i < chunk.samples; ++i) {
      if (cancelled()) return no_longer_wanted();
      SLUICE_TRY_VOID(produce(request, first + i, pixels.subspan(i * sample_bytes, sample_bytes), scratch));
    }
    emit(std::move(chunk));
    if (total == 0) break;
  }
  return {};
}

}  // namespace sluice::executor
