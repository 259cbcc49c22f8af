// What a native pipeline and its threads' workspaces hold; for the files of NativePipeline alone.
#pragma once

#include <memory>
#include <vector>

#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/pipeline_files.h"
#include "src/pipeline/pipeline_spec.h"
#include "src/pipeline/planned_image.h"
#include "src/pipeline/tensor_conversion.h"

namespace sluice::pipeline {

struct Workspace::State {
  std::vector<std::uint8_t> file;
  ImageBuffers buffers;
};

struct NativePipeline::State {
  State(PipelineSpec parsed, std::shared_ptr<const FileReader> reader);

  const FileReader& files() const { return own_files != nullptr ? *own_files : *shared_files; }
  std::size_t pixel_bytes() const { return bytes_of(spec.output_size) / 3 * static_cast<std::size_t>(spec.channels); }

  PipelineSpec spec;
  std::shared_ptr<const FileReader> shared_files;
  TensorConversion conversion;
  BatchSchema schema;
  std::size_t samples = 0;
  std::size_t image_ops = 0;                       // the first so many
  std::unique_ptr<const PipelineFiles> own_files;  // after shared_files, which it uses; null: all pipelines read alike
};

}  // namespace sluice::pipeline
