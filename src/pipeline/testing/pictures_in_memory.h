// A native pipeline over files in memory.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "src/base/testing/catch.h"
#include "src/pipeline/file_reader.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/testing/jpeg_encoder.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::pipeline::testing {

// Files in memory; a missing one is a missing file, and one path stands for a machine without memory.
class MemoryFiles final : public FileReader {
 public:
  std::map<std::string, std::vector<std::uint8_t>> files;
  std::chrono::milliseconds takes{0};  // to read a file

  Result<void> read(const FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    if (part.path.ends_with("out-of-memory.jpg")) throw std::bad_alloc();
    std::this_thread::sleep_for(takes);
    const auto found = files.find(part.path);
    if (found == files.end()) return not_found("open " + part.path);
    bytes = found->second;
    if (!part.range) return {};
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(part.range->offset);
    bytes = std::vector<std::uint8_t>(begin, begin + static_cast<std::ptrdiff_t>(part.range->bytes));
    return {};
  }
  Result<FileIdentity> identify(const std::string& path) const override { return not_found("stat " + path); }
};

inline constexpr const char* kTensorOps = R"([{"op": "decode_rgb"},
    {"op": "random_resized_crop", "size": [32, 48], "scale": [0.08, 1], "ratio": [0.75, 1.3333333333333333]},
    {"op": "random_horizontal_flip", "p": 0.5}, {"op": "to_tensor"},
    {"op": "normalize", "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}])";
inline constexpr const char* kByteOps = R"([{"op": "decode_rgb"}, {"op": "center_crop", "size": [20, 30]}])";

// Samples 0 and 6 are a good picture, 1 is a small one, and the others fail.
class PicturesInMemory {
 public:
  // `ops`: a list, or an object with "ops" and "views".
  explicit PicturesInMemory(const char* ops, const char* order = "exact") {
    const std::vector<File> paths{{"good.jpg", 3},    {"/abs/small.jpg", 1}, {"truncated.jpg", 4},
                                  {"picture.gif", 1}, {"missing.jpg", 5},    {"out-of-memory.jpg", 9},
                                  {"good.jpg", -2}};
    files->files["/data/good.jpg"] = encode_picture({90, 120}, {});
    files->files["/abs/small.jpg"] = encode_picture({9, 11}, {});
    files->files["/data/truncated.jpg"] = encode_picture({90, 120}, {});
    files->files["/data/truncated.jpg"].resize(1500);
    files->files["/data/picture.gif"] = {'G', 'I', 'F', '8', '9', 'a'};
    nlohmann::json spec;
    spec["version"] = 2;
    spec["order"] = order;
    spec["source"] = {{"kind", "image_files"}, {"root", "/data"}};
    nlohmann::json lists = nlohmann::json::parse(ops);
    spec.update(lists.is_object() ? lists : nlohmann::json{{"ops", lists}});
    specification = testing::specification(spec, paths);
    auto parsed = NativePipeline::parse(specification, files);
    REQUIRE(parsed.ok());
    pipeline = *parsed;
    pixels.resize(pipeline->wire_sample_bytes());
  }

  Error error_of(std::int64_t index) {
    const auto made = pipeline->produce(index, 1, pixels, workspace);
    REQUIRE_FALSE(made.ok());
    return made.error();
  }

  std::shared_ptr<MemoryFiles> files = std::make_shared<MemoryFiles>();
  std::string specification;
  std::shared_ptr<const NativePipeline> pipeline;
  Workspace workspace;
  std::vector<std::uint8_t> pixels;
};

}  // namespace sluice::pipeline::testing
