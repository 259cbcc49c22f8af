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

// How a view's image becomes a tensor, and where it lies in a sample's wire form.
struct ViewForm {
  TensorConversion conversion;
  std::size_t wire_at = 0;
  std::size_t pixel_bytes = 0;

  std::size_t wire_bytes() const { return pixel_bytes + conversion.drawn_bytes(); }
};

struct NativePipeline::State {
  State(PipelineSpec parsed, std::shared_ptr<const FileReader> reader);

  const FileReader& files() const { return own_files != nullptr ? *own_files : *shared_files; }

  PipelineSpec spec;
  std::shared_ptr<const FileReader> shared_files;
  std::vector<ViewForm> forms;  // of the specification's views
  BatchSchema schema;
  std::size_t samples = 0;
  std::unique_ptr<const PipelineFiles> own_files;  // after shared_files, which it uses; null: all pipelines read alike
};

}  // namespace sluice::pipeline
