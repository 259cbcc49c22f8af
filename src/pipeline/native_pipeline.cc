#include "src/pipeline/native_pipeline.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <new>
#include <utility>

#include "src/pipeline/native_pipeline_state.h"
#include "src/pipeline/prefix_output.h"
#include "src/pipeline/torch_random.h"

namespace sluice::pipeline {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

FilePart part_of(const ImageFilesSource& source, std::size_t index) {
  std::string path = source.table.path(index);
  if (source.root.empty() || path.starts_with('/')) return path;
  return source.root + '/' + path;
}

FilePart part_of(const FileRangesSource& source, std::size_t index) { return source.table.part(index); }

// REQUIRES: the samples are read from files
FilePart part_of(const PipelineSpec& spec, std::size_t index) {
  if (const auto* files = std::get_if<ImageFilesSource>(&spec.source)) return part_of(*files, index);
  return part_of(std::get<FileRangesSource>(spec.source), index);
}

bool is_of_files(const PipelineSpec& spec) { return !std::holds_alternative<PixelsSource>(spec.source); }

std::vector<ViewForm> forms_of(const std::vector<View>& views) {
  std::vector<ViewForm> forms;
  std::size_t wire_at = 0;
  for (const View& view : views) {
    std::vector<const Op*> tensor_ops;
    for (const NamedOp& named : std::span(view.ops).subspan(view.image_ops)) tensor_ops.push_back(named.op.get());
    const std::size_t pixel_bytes = bytes_of(view.output_size) / 3 * static_cast<std::size_t>(view.channels);
    forms.push_back({TensorConversion(tensor_ops, view.output_size, view.channels), wire_at, pixel_bytes});
    wire_at += forms.back().wire_bytes();
  }
  return forms;
}

BatchSchema schema_of(const std::vector<View>& views, const std::vector<ViewForm>& forms) {
  std::vector<Field> fields;
  for (std::size_t i = 0; i < views.size(); ++i) {
    const TensorConversion& conversion = forms[i].conversion;
    const auto [height, width] = views[i].output_size;
    fields.push_back({"images",
                      conversion.dtype(),
                      {views[i].channels, height, width},
                      forms[i].pixel_bytes * conversion.element_bytes()});
  }
  fields.push_back({"labels", "int64", {}, sizeof(std::int64_t)});
  return BatchSchema(std::move(fields));
}

Result<void> change(PlannedImage& image, const NamedOp& named, TorchRandom& random) {
  const auto& [name, op, keeps_position] = named;
  if (keeps_position) SLUICE_TRY_VOID(image.settle());
  image.begin(name);
  SLUICE_TRY_VOID(op->change(image, random));
  if (keeps_position) SLUICE_TRY_VOID(image.settle());
  return image.end();
}

}  // namespace

Workspace::Workspace() : state_(std::make_unique<State>()) {}
Workspace::~Workspace() = default;
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;

OpCosts Workspace::take_costs() { return std::exchange(state_->buffers.costs, {}); }

NativePipeline::State::State(PipelineSpec parsed, std::shared_ptr<const FileReader> reader)
    : spec(std::move(parsed)),
      shared_files(std::move(reader)),
      forms(forms_of(spec.views)),
      schema(schema_of(spec.views, forms)),
      samples(std::visit([](const auto& source) { return source.table.size(); }, spec.source)),
      own_files(samples == 0 || !is_of_files(spec) ? nullptr : shared_files->for_pipeline(samples)) {}

NativePipeline::NativePipeline(std::unique_ptr<const State> state) : state_(std::move(state)) {}
NativePipeline::~NativePipeline() = default;

Result<std::shared_ptr<const NativePipeline>> NativePipeline::parse(std::string_view spec,
                                                                    std::shared_ptr<const FileReader> files,
                                                                    std::shared_ptr<const void> owner) {
  SLUICE_TRY(PipelineSpec parsed, parse_pipeline_spec(spec, std::move(owner)));
  if (files == nullptr) files = make_system_file_reader();
  auto state = std::make_unique<const State>(std::move(parsed), std::move(files));
  return std::shared_ptr<const NativePipeline>(new NativePipeline(std::move(state)));
}

std::size_t NativePipeline::sample_count() const { return state_->samples; }

bool NativePipeline::has_files() const { return is_of_files(state_->spec); }

std::size_t NativePipeline::wire_sample_bytes() const {
  const ViewForm& last = state_->forms.back();
  return last.wire_at + last.wire_bytes();
}

std::size_t NativePipeline::view_count() const { return state_->forms.size(); }

const BatchSchema& NativePipeline::schema() const { return state_->schema; }

std::int64_t NativePipeline::label(std::int64_t index) const {
  assert(index >= 0 && static_cast<std::size_t>(index) < sample_count());
  return std::visit([&](const auto& source) { return source.table.label(static_cast<std::size_t>(index)); },
                    state_->spec.source);
}

void NativePipeline::announce(const EpochOrder& order) const {
  if (order.length != sample_count() || order.length == 0 || !is_of_files(state_->spec)) return;
  const auto part = [&](std::size_t index) { return part_of(state_->spec, index); };
  state_->files().announce(part, state_->spec.prefix, order);
}

std::shared_ptr<ReadAhead> NativePipeline::read_ahead(std::span<const std::int64_t> indices) const {
  const auto* source = std::get_if<FileRangesSource>(&state_->spec.source);
  if (source == nullptr || !source->table.has_objects()) return nullptr;
  const auto exists = [&](std::int64_t index) {
    return index >= 0 && static_cast<std::size_t>(index) < sample_count();
  };
  std::vector<std::int64_t> samples;
  std::copy_if(indices.begin(), indices.end(), std::back_inserter(samples), exists);
  const auto part = [&](std::size_t i) { return source->table.part(static_cast<std::size_t>(samples[i])); };
  return state_->files().read_ahead(part, samples.size(), state_->spec.prefix);
}

Result<void> NativePipeline::produce(std::int64_t index, std::uint32_t seed, std::span<std::uint8_t> wire,
                                     Workspace& workspace) const {
  if (index < 0 || static_cast<std::size_t>(index) >= sample_count()) {
    return invalid_argument("sample " + std::to_string(index) + " does not exist; the data set has " +
                            std::to_string(sample_count()));
  }
  assert(wire.size() == wire_sample_bytes());
  const auto sample = static_cast<std::size_t>(index);
  const auto* pixels = std::get_if<PixelsSource>(&state_->spec.source);
  if (pixels == nullptr) return produce_from_file(sample, seed, wire, workspace);
  try {
    const auto made = produce_from_pixels(pixels->table, sample, seed, wire, workspace);
    if (!made) return made.error().with_context("image " + std::to_string(index));
    return {};
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kResourceExhausted, "image " + std::to_string(index) + ": not enough memory for it");
  }
}

Result<void> NativePipeline::produce_from_file(std::size_t index, std::uint32_t seed, std::span<std::uint8_t> wire,
                                               Workspace& workspace) const {
  const FilePart part = part_of(state_->spec, index);
  try {
    const auto started = SteadyClock::now();
    SLUICE_TRY(ImageContent content, read_part(part, workspace));
    const bool learns = state_->own_files != nullptr;  // else no sample pays for the measuring
    const double read_at = learns ? thread_cpu_seconds() : 0;
    auto made = run_ops(part, content, seed, wire, workspace, state_->files());
    if (made) {
      if (learns) content.making_seconds = thread_cpu_seconds() - read_at;
      learn(part, content, seed, seconds_since(started), workspace);
      return {};
    }
    if (content.form != FileForm::kFile || content.wants_output_of) {
      // Only the file itself, decoded as far as this sample needs it, can say what is wrong with it.
      SLUICE_TRY_VOID(state_->files().read(part, workspace.state_->file));
      made = run_ops(part, {}, seed, wire, workspace, state_->files());
    }
    if (!made) return made.error().with_context(part.name());
    return {};
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kResourceExhausted, part.name() + ": not enough memory to decode it");
  }
}

Result<void> NativePipeline::produce_from_pixels(const PixelTable& table, std::size_t index, std::uint32_t seed,
                                                 std::span<std::uint8_t> wire, Workspace& workspace) const {
  auto& buffers = workspace.state_->buffers;
  const ImageSize size = table.image_size();
  const std::size_t bytes = bytes_of(size);
  buffers.stopwatch = buffers.stopwatches_in_memory.next();
  buffers.pixels.resize(std::max(buffers.pixels.size(), bytes + kReadableBytesBehindPixels));
  table.copy_rgb(index, std::span(buffers.pixels).first(bytes));
  buffers.stopwatch.lap(buffers.costs.read, bytes);
  PlannedImage image = PlannedImage::of_pixels(size, state_->spec.pass_order, buffers, state_->spec.op_order);
  TorchRandom random(seed);
  for (const NamedOp& op : state_->spec.ops) SLUICE_TRY_VOID(change(image, op, random));
  return write_wire(image, random, wire, workspace);
}

Result<ImageContent> NativePipeline::read_part(const FilePart& part, Workspace& workspace) const {
  auto& costs = workspace.state_->buffers.costs;
  const auto started = SteadyClock::now();
  Cost cost;
  Stopwatch stopwatch;
  SLUICE_TRY(ImageContent content, state_->files().read_image(part, state_->spec.prefix, workspace.state_->file));
  stopwatch.lap(cost, workspace.state_->file.size());
  content.reading_seconds = cost.seconds - content.keeping_seconds;
  costs.read.add(cost);
  costs.blocked_seconds += std::max(0.0, seconds_since(started) - cost.seconds);
  return content;
}

Result<PlannedImage> NativePipeline::open(const ImageContent& content, Workspace& workspace) const {
  auto& [file, buffers] = *workspace.state_;
  if (content.form == FileForm::kOutput) {
    SLUICE_TRY(const ImageSize size, take_output_size(file));
    buffers.pixels.swap(file);
    buffers.pixels.resize(bytes_of(size) + kReadableBytesBehindPixels);
    return PlannedImage::of_pixels(size, state_->spec.pass_order, buffers, state_->spec.op_order);
  }
  auto opened = content.form == FileForm::kFile ? buffers.decoder.open(file) : buffers.decoder.open_coefficients(file);
  SLUICE_TRY(const ImageSize size, std::move(opened));
  const std::int64_t pixels_of_file = std::int64_t{size.height} * size.width;
  if (const auto limit = state_->spec.max_image_pixels; limit && pixels_of_file > *limit) {
    return invalid_argument("has " + std::to_string(pixels_of_file) + " pixels, more than max_image_pixels (" +
                            std::to_string(*limit) + ")");
  }
  return PlannedImage(size, state_->spec.pass_order, buffers, state_->spec.op_order);
}

Result<void> NativePipeline::run_ops(const FilePart& part, const ImageContent& content, std::uint32_t seed,
                                     std::span<std::uint8_t> wire, Workspace& workspace,
                                     const FileReader& files) const {
  auto& buffers = workspace.state_->buffers;
  buffers.stopwatch = Stopwatch();
  SLUICE_TRY(PlannedImage image, open(content, workspace));
  TorchRandom random(seed);
  const auto& ops = state_->spec.ops;
  const std::size_t prefix_ops = state_->spec.prefix.ops;
  for (std::size_t i = content.form == FileForm::kOutput ? prefix_ops : 0; i < ops.size(); ++i) {
    if (i == prefix_ops) SLUICE_TRY_VOID(keep_output(part, content, image, workspace, files));
    SLUICE_TRY_VOID(change(image, ops[i], random));
  }
  if (prefix_ops == ops.size()) SLUICE_TRY_VOID(keep_output(part, content, image, workspace, files));
  return write_wire(image, random, wire, workspace);
}

Result<void> NativePipeline::write_wire(PlannedImage& image, TorchRandom& random, std::span<std::uint8_t> wire,
                                        Workspace& workspace) const {
  const PipelineSpec& spec = state_->spec;
  if (spec.views.size() == 1) return write_view(0, image, random, wire, workspace);
  SLUICE_TRY(const RgbView shared, image.share());
  for (std::size_t view = 0; view < spec.views.size(); ++view) {
    PlannedImage own = PlannedImage::of_view(shared, spec.pass_order, workspace.state_->buffers, spec.op_order);
    SLUICE_TRY_VOID(write_view(view, own, random, wire, workspace));
  }
  return {};
}

Result<void> NativePipeline::write_view(std::size_t view, PlannedImage& image, TorchRandom& random,
                                        std::span<std::uint8_t> wire, Workspace& workspace) const {
  const View& made = state_->spec.views[view];
  const ViewForm& form = state_->forms[view];
  for (const NamedOp& op : std::span(made.ops).first(made.image_ops)) SLUICE_TRY_VOID(change(image, op, random));
  if (!(image.size() == made.output_size)) return Error(ErrorCode::kDataLoss, "has another size than it had");
  const std::span<std::uint8_t> pixels = wire.subspan(form.wire_at, form.pixel_bytes);
  form.conversion.draw(random, wire.subspan(form.wire_at + form.pixel_bytes, form.conversion.drawn_bytes()));
  if (made.channels == 3) return image.write_to(pixels);
  auto& three = workspace.state_->buffers.three_channels;  // which are equal
  three.resize(3 * pixels.size());
  SLUICE_TRY_VOID(image.write_to(three));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = three[3 * i];
  return {};
}

Result<void> NativePipeline::keep_output(const FilePart& part, const ImageContent& content, PlannedImage& image,
                                         Workspace& workspace, const FileReader& files) const {
  // Relaxed, a sample would depend on whether it is made from a kept output, where nothing waits.
  if (image.is_relaxed()) SLUICE_TRY_VOID(image.settle());
  if (!content.wants_output_of) return {};
  const Prefix& prefix = state_->spec.prefix;
  const std::size_t bytes = output_bytes(image.size());
  if (bytes > kOutputBytesMax) return {};
  if (!files.has_room_for_output(part, prefix, *content.wants_output_of, bytes)) return {};
  const ImageSize size = image.size();
  SLUICE_TRY(const std::span<const std::uint8_t> pixels, image.pixels());
  auto& file = workspace.state_->file;  // whose content has been decoded
  file.assign(pixels.begin(), pixels.end());
  append_output_size(size, file);
  files.keep_output(part, prefix, *content.wants_output_of, file);
  return {};
}

void NativePipeline::finish(std::span<const std::uint8_t> wire, std::size_t view, std::span<std::byte> image) const {
  const auto& [conversion, wire_at, pixel_bytes] = state_->forms[view];
  conversion.apply(wire.subspan(wire_at, pixel_bytes), wire.subspan(wire_at + pixel_bytes, conversion.drawn_bytes()),
                   image);
}

}  // namespace sluice::pipeline
