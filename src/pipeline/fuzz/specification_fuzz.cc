// A native pipeline with its table of files or of their ranges, as a client sends it: refused, or consistent in itself.
#include "src/pipeline/fuzz/fuzz.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/pipeline_spec.h"

namespace sluice::pipeline::fuzz {
namespace {

constexpr int kMaxSide = 16384;
constexpr std::size_t kMaxDrawnBytes = 64 * 8;

std::size_t path_bytes_of(const std::variant<ImageFilesSource, FileRangesSource>& source, std::size_t index) {
  if (const auto* files = std::get_if<ImageFilesSource>(&source)) return files->files.path(index).size();
  const FilePart part = std::get<FileRangesSource>(source).files.part(index);
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
  const ImageSize size = spec->output_size;
  FUZZ_CHECK(size.height > 0 && size.height <= kMaxSide && size.width > 0 && size.width <= kMaxSide);
  const std::size_t pixel_bytes = static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width) * 3;
  const std::size_t wire_bytes = (*pipeline)->wire_sample_bytes();
  FUZZ_CHECK(wire_bytes >= pixel_bytes && wire_bytes <= pixel_bytes + kMaxDrawnBytes);
  FUZZ_CHECK((*pipeline)->schema().batch_bytes(2) >= 2 * pixel_bytes + 2 * sizeof(std::int64_t));
  std::size_t path_bytes = 0;
  for (std::size_t i = 0; i < (*pipeline)->sample_count(); ++i) {
    path_bytes += path_bytes_of(spec->source, i);
    static_cast<void>((*pipeline)->label(static_cast<std::int64_t>(i)));
  }
  static_cast<void>(path_bytes);
}

}  // namespace sluice::pipeline::fuzz
