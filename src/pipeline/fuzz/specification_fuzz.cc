// A native pipeline with its table of files or of their ranges, as a client sends it: refused, or consistent in itself.
#include "src/pipeline/fuzz/fuzz.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/pipeline_spec.h"

namespace sluice::pipeline::fuzz {
namespace {

constexpr int kMaxSide = 16384;
constexpr std::size_t kMaxDrawnBytes = 64 * 8;

using Source = decltype(PipelineSpec::source);

// How much a sample has been read for: every byte that it is made of must be there.
std::size_t bytes_read_of(const Source& source, std::size_t index) {
  if (const auto* pixels = std::get_if<PixelsSource>(&source)) {
    std::vector<std::uint8_t> rgb(bytes_of(pixels->table.image_size()));
    pixels->table.copy_rgb(index, rgb);
    return static_cast<std::size_t>(rgb.back());
  }
  if (const auto* files = std::get_if<ImageFilesSource>(&source)) return files->table.path(index).size();
  const FilePart part = std::get<FileRangesSource>(source).table.part(index);
  FUZZ_CHECK(part.range->bytes <= part.range->file_bytes &&
             part.range->offset <= part.range->file_bytes - part.range->bytes);
  return part.path.size();
}

}  // namespace

void specification(std::string_view input) {
  const auto spec = parse_pipeline_spec(input);
  const auto pipeline = NativePipeline::parse(input);
  FUZZ_CHECK(spec.ok() == pipeline.ok());
  if (!spec.ok()) {
    FUZZ_CHECK(!spec.error().message().empty());
    return;
  }
  FUZZ_CHECK(!spec->views.empty() && spec->views.size() == (*pipeline)->view_count());
  std::size_t pixel_bytes = 0;
  for (const View& view : spec->views) {
    const ImageSize size = view.output_size;
    FUZZ_CHECK(size.height > 0 && size.height <= kMaxSide && size.width > 0 && size.width <= kMaxSide);
    pixel_bytes += static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width) *
                   static_cast<std::size_t>(view.channels);
  }
  const std::size_t wire_bytes = (*pipeline)->wire_sample_bytes();
  FUZZ_CHECK(wire_bytes >= pixel_bytes && wire_bytes <= pixel_bytes + spec->views.size() * kMaxDrawnBytes);
  FUZZ_CHECK((*pipeline)->schema().batch_bytes(2) >= 2 * pixel_bytes + 2 * sizeof(std::int64_t));
  std::size_t bytes_read = 0;
  for (std::size_t i = 0; i < (*pipeline)->sample_count(); ++i) {
    bytes_read += bytes_read_of(spec->source, i);
    static_cast<void>((*pipeline)->label(static_cast<std::int64_t>(i)));
  }
  static_cast<void>(bytes_read);
}

}  // namespace sluice::pipeline::fuzz
