// A native pipeline with its table of files, as a client sends it: refused, or consistent in itself.
#include "src/pipeline/fuzz/fuzz.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/pipeline_spec.h"

namespace sluice::pipeline::fuzz {
namespace {

constexpr int kMaxSide = 16384;
constexpr std::size_t kMaxDrawnBytes = 64 * 8;

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
  for (std::size_t i = 0; i < spec->source.files.size(); ++i) {
    path_bytes += spec->source.files.path(i).size();
    static_cast<void>((*pipeline)->label(static_cast<std::int64_t>(i)));
  }
  static_cast<void>(path_bytes);
}

}  // namespace sluice::pipeline::fuzz
