// Native pipelines over the first pictures of a cache's source, and the samples that they make.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/cache/testing/memory_disk.h"
#include "src/pipeline/file_reader.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::cache::testing {

inline constexpr const char* kValidation =
    R"([{"op": "decode_rgb"}, {"op": "resize", "size": [40]}, {"op": "center_crop", "size": [32, 32]}, {"op": "to_tensor"}])";
inline constexpr const char* kRandomFromTheStart =
    R"([{"op": "decode_rgb"}, {"op": "random_crop", "size": [32, 32]}, {"op": "random_horizontal_flip", "p": 0.5}])";

inline std::string path_of(int i) { return "/data/" + std::to_string(i) + ".jpg"; }

// Does not own `reader`.
inline std::shared_ptr<const pipeline::FileReader> borrowed(const pipeline::FileReader& reader) {
  return {&reader, [](const auto*) {}};
}

inline std::shared_ptr<const pipeline::NativePipeline> pipeline_of(const char* ops, int pictures,
                                                                   std::shared_ptr<const pipeline::FileReader> reader) {
  nlohmann::json spec{{"version", 2}, {"source", {{"kind", "image_files"}, {"root", ""}}}};
  spec["ops"] = nlohmann::json::parse(ops);
  std::vector<pipeline::testing::File> paths;
  for (int i = 0; i < pictures; ++i) paths.push_back({path_of(i), i});
  auto native = pipeline::NativePipeline::parse(pipeline::testing::specification(spec, paths), std::move(reader));
  REQUIRE(native.ok());
  return *native;
}

// All samples, one behind the other; sample i draws from seed + i.
inline Bytes epoch_of(const pipeline::NativePipeline& native, std::uint32_t seed) {
  pipeline::Workspace workspace;
  const std::size_t bytes = native.wire_sample_bytes();
  Bytes samples(native.sample_count() * bytes);
  for (std::size_t i = 0; i < native.sample_count(); ++i)
    REQUIRE(native
                .produce(static_cast<std::int64_t>(i), seed + static_cast<std::uint32_t>(i),
                         std::span(samples).subspan(i * bytes, bytes), workspace)
                .ok());
  return samples;
}

}  // namespace sluice::cache::testing
