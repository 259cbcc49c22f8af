#include "src/pipeline/native_pipeline.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <new>
#include <utility>

#include "src/pipeline/file_reader.h"
#include "src/pipeline/pipeline_spec.h"
#include "src/pipeline/planned_image.h"
#include "src/pipeline/tensor_conversion.h"
#include "src/pipeline/torch_random.h"

namespace sluice::pipeline {
namespace {

FilePart part_of(const ImageFilesSource& source, std::size_t index) {
  std::string path = source.files.path(index);
  if (source.root.empty() || path.starts_with('/')) return path;
  return source.root + '/' + path;
}

FilePart part_of(const FileRangesSource& source, std::size_t index) { return source.files.part(index); }

BatchSchema schema_of(const TensorConversion& conversion, ImageSize size) {
  const std::size_t elements = 3 * static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width);
  return BatchSchema(
      {{"images", conversion.dtype(), {3, size.height, size.width}, elements * conversion.element_bytes()},
       {"labels", "int64", {}, sizeof(std::int64_t)}});
}

std::size_t bytes_of(ImageSize size) {
  return static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width) * 3;
}

std::vector<const Op*> tensor_ops(const PipelineSpec& spec) {
  std::vector<const Op*> ops;
  ValueType value;
  for (const auto& [name, op] : spec.ops) {
    value = op->result_of(value);
    if (value.kind == ValueKind::kTensor) ops.push_back(op.get());
  }
  return ops;
}

}  // namespace

struct Workspace::State {
  std::vector<std::uint8_t> file;
  ImageBuffers buffers;
};

Workspace::Workspace() : state_(std::make_unique<State>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

OpCosts Workspace::take_costs() { return std::exchange(state_->buffers.costs, {}); }

struct NativePipeline::State {
  State(PipelineSpec parsed, std::shared_ptr<const FileReader> reader)
      : spec(std::move(parsed)),
        files(std::move(reader)),
        conversion(tensor_ops(spec), spec.output_size),
        schema(schema_of(conversion, spec.output_size)),
        samples(std::visit([](const auto& source) { return source.files.size(); }, spec.source)) {
    image_ops = spec.ops.size() - tensor_ops(spec).size();
  }

  std::size_t pixel_bytes() const { return bytes_of(spec.output_size); }

  PipelineSpec spec;
  std::shared_ptr<const FileReader> files;
  TensorConversion conversion;
  BatchSchema schema;
  std::size_t samples = 0;
  std::size_t image_ops = 0;  // the first so many
};

NativePipeline::NativePipeline(std::unique_ptr<const State> state) : state_(std::move(state)) {}
NativePipeline::~NativePipeline() = default;

Result<std::shared_ptr<const NativePipeline>> NativePipeline::parse(std::string_view spec,
                                                                    std::shared_ptr<const FileReader> files) {
  SLUICE_TRY(PipelineSpec parsed, parse_pipeline_spec(spec));
  if (files == nullptr) files = make_system_file_reader();
  auto state = std::make_unique<const State>(std::move(parsed), std::move(files));
  return std::shared_ptr<const NativePipeline>(new NativePipeline(std::move(state)));
}

std::size_t NativePipeline::sample_count() const { return state_->samples; }

std::size_t NativePipeline::wire_sample_bytes() const {
  return state_->pixel_bytes() + state_->conversion.drawn_bytes();
}

const BatchSchema& NativePipeline::schema() const { return state_->schema; }

std::int64_t NativePipeline::label(std::int64_t index) const {
  assert(index >= 0 && static_cast<std::size_t>(index) < sample_count());
  return std::visit([&](const auto& source) { return source.files.label(static_cast<std::size_t>(index)); },
                    state_->spec.source);
}

Result<void> NativePipeline::produce(std::int64_t index, std::uint32_t seed, std::span<std::uint8_t> wire,
                                     Workspace& workspace) const {
  if (index < 0 || static_cast<std::size_t>(index) >= sample_count()) {
    return invalid_argument("sample " + std::to_string(index) + " does not exist; the data set has " +
                            std::to_string(sample_count()));
  }
  assert(wire.size() == wire_sample_bytes());
  const FilePart part = std::visit([&](const auto& source) { return part_of(source, static_cast<std::size_t>(index)); },
                                   state_->spec.source);
  try {
    SLUICE_TRY(const FileForm form, read_part(part, workspace));
    auto made = run_ops(form, seed, wire, workspace);
    if (!made && form != FileForm::kFile) {
      // Only the file itself can say what is wrong with it.
      SLUICE_TRY_VOID(state_->files->read(part, workspace.state_->file));
      made = run_ops(FileForm::kFile, seed, wire, workspace);
    }
    if (!made) return made.error().with_context(part.name());
    return {};
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kResourceExhausted, part.name() + ": not enough memory to decode it");
  }
}

Result<FileForm> NativePipeline::read_part(const FilePart& part, Workspace& workspace) const {
  auto& costs = workspace.state_->buffers.costs;
  const auto started = std::chrono::steady_clock::now();
  Cost cost;
  Stopwatch stopwatch;
  SLUICE_TRY(const FileForm form, state_->files->read_image(part, workspace.state_->file));
  stopwatch.lap(cost, workspace.state_->file.size());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  costs.read.add(cost);
  costs.blocked_seconds += std::max(0.0, took.count() - cost.seconds);
  return form;
}

Result<void> NativePipeline::run_ops(FileForm form, std::uint32_t seed, std::span<std::uint8_t> wire,
                                     Workspace& workspace) const {
  auto& [file, buffers] = *workspace.state_;
  buffers.stopwatch = Stopwatch();
  auto opened = form == FileForm::kFile ? buffers.decoder.open(file) : buffers.decoder.open_coefficients(file);
  SLUICE_TRY(const ImageSize size, std::move(opened));
  const std::int64_t pixels_of_file = std::int64_t{size.height} * size.width;
  if (const auto limit = state_->spec.max_image_pixels; limit && pixels_of_file > *limit) {
    return invalid_argument("has " + std::to_string(pixels_of_file) + " pixels, more than max_image_pixels (" +
                            std::to_string(*limit) + ")");
  }
  PlannedImage image(size, state_->spec.pass_order, buffers);
  TorchRandom random(seed);
  for (const auto& [name, op] : std::span(state_->spec.ops).first(state_->image_ops)) {
    SLUICE_TRY_VOID(op->change(image, random));
    if (image.take_was_touched()) buffers.stopwatch.lap(buffers.costs.ops[name], bytes_of(image.size()));
  }
  state_->conversion.draw(random, wire.subspan(state_->pixel_bytes()));
  return image.write_to(wire.first(state_->pixel_bytes()));
}

void NativePipeline::finish(std::span<const std::uint8_t> wire, std::span<std::byte> image) const {
  state_->conversion.apply(wire.first(state_->pixel_bytes()), wire.subspan(state_->pixel_bytes()), image);
}

}  // namespace sluice::pipeline
