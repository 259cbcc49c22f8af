#include "src/pipeline/native_pipeline.h"

#include <cassert>
#include <new>
#include <utility>

#include "src/base/clock.h"
#include "src/pipeline/file_reader.h"
#include "src/pipeline/geometry.h"
#include "src/pipeline/jpeg_decoder.h"
#include "src/pipeline/pipeline_spec.h"
#include "src/pipeline/resampler.h"
#include "src/pipeline/tensor_conversion.h"
#include "src/pipeline/torch_random.h"

namespace sluice::pipeline {
namespace {

constexpr std::size_t kTensorAlignmentBytes = 64;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kTensorAlignmentBytes - 1) / kTensorAlignmentBytes * kTensorAlignmentBytes;
}

std::string path_of(const ImageFilesSource& source, std::size_t index) {
  const std::string& path = source.paths[index];
  if (source.root.empty() || path.starts_with('/')) return path;
  return source.root + '/' + path;
}

// Adds the thread's CPU time since the last lap to one of the stages.
class Stopwatch {
 public:
  void lap(double& seconds) {
    const double now = thread_cpu_seconds();
    seconds += now - last_;
    last_ = now;
  }

 private:
  double last_ = thread_cpu_seconds();
};

}  // namespace

struct Workspace::State {
  std::vector<std::uint8_t> file;
  JpegDecoder decoder;
  Resampler resampler;
  StageSeconds seconds;
};

Workspace::Workspace() : state_(std::make_unique<State>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

StageSeconds Workspace::take_stage_seconds() { return std::exchange(state_->seconds, {}); }

struct NativePipeline::State {
  PipelineSpec spec;
  std::shared_ptr<const FileReader> files;
  TensorConversion conversion;
};

NativePipeline::NativePipeline(std::unique_ptr<const State> state) : state_(std::move(state)) {}
NativePipeline::~NativePipeline() = default;

Result<std::shared_ptr<const NativePipeline>> NativePipeline::parse(std::string_view spec_json,
                                                                    std::shared_ptr<const FileReader> files) {
  SLUICE_TRY(PipelineSpec spec, parse_pipeline_spec(spec_json));
  if (files == nullptr) files = make_system_file_reader();
  const TensorConversion conversion(spec.to_tensor, spec.normalize);
  auto state = std::make_unique<const State>(State{std::move(spec), std::move(files), conversion});
  return std::shared_ptr<const NativePipeline>(new NativePipeline(std::move(state)));
}

std::size_t NativePipeline::sample_count() const { return state_->spec.source.paths.size(); }

std::size_t NativePipeline::wire_sample_bytes() const {
  const ImageSize size = state_->spec.output_size;
  return static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width) * 3;
}

std::size_t NativePipeline::final_sample_bytes() const {
  return wire_sample_bytes() * state_->conversion.element_bytes();
}

std::vector<TensorLayout> NativePipeline::batch_layout(std::size_t batch) const {
  const ImageSize size = state_->spec.output_size;
  const auto samples = static_cast<std::int64_t>(batch);
  const std::size_t image_bytes = batch * final_sample_bytes();
  return {{state_->conversion.dtype(), {samples, 3, size.height, size.width}, 0, image_bytes},
          {"int64", {samples}, aligned(image_bytes), batch * sizeof(std::int64_t)}};
}

std::size_t NativePipeline::batch_bytes(std::size_t batch) const {
  return aligned(batch * final_sample_bytes()) + batch * sizeof(std::int64_t);
}

std::int64_t NativePipeline::label(std::int64_t index) const {
  assert(index >= 0 && static_cast<std::size_t>(index) < sample_count());
  return state_->spec.source.labels[static_cast<std::size_t>(index)];
}

Result<void> NativePipeline::produce(std::int64_t index, std::uint32_t seed, std::span<std::uint8_t> pixels,
                                     Workspace& workspace) const {
  if (index < 0 || static_cast<std::size_t>(index) >= sample_count()) {
    return invalid_argument("sample " + std::to_string(index) + " does not exist; the data set has " +
                            std::to_string(sample_count()));
  }
  assert(pixels.size() == wire_sample_bytes());
  const std::string path = path_of(state_->spec.source, static_cast<std::size_t>(index));
  try {
    Stopwatch stopwatch;
    SLUICE_TRY_VOID(state_->files->read(path, workspace.state_->file));
    stopwatch.lap(workspace.state_->seconds.read);
    if (auto made = make_pixels(seed, pixels, workspace); !made) return made.error().with_context(path);
    return {};
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kResourceExhausted, path + ": not enough memory to decode it");
  }
}

Result<void> NativePipeline::make_pixels(std::uint32_t seed, std::span<std::uint8_t> pixels,
                                         Workspace& workspace) const {
  auto& [file, decoder, resampler, seconds] = *workspace.state_;
  Stopwatch stopwatch;
  SLUICE_TRY(const ImageSize size, decoder.open(file));
  TorchRandom random(seed);
  SLUICE_TRY(const GeometryPlan plan,
             plan_geometry(state_->spec.geometry, state_->spec.flip_probability, size, random));
  SLUICE_TRY(const RgbView decoded, decoder.decode(resampler.prepare(plan, state_->spec.pass_order)));
  stopwatch.lap(seconds.decode);
  resampler.resample(decoded, pixels);
  stopwatch.lap(seconds.resample);
  return {};
}

void NativePipeline::finish(std::span<const std::uint8_t> wire_pixels, std::span<std::byte> final_image) const {
  state_->conversion.apply(wire_pixels, final_image);
}

}  // namespace sluice::pipeline
