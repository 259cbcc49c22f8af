// sluice-pipeline-bench [REPETITIONS] < list of JPEG files, one a line: CPU-seconds per 1,000 images of the native
// training pipeline (decode, RandomResizedCrop(224), flip, normalise) on one thread.
//
// Prints one JSON object. Every figure is the smallest of the repetitions: other load on the machine only adds.
//   bytes       produce() alone: what a worker computes per image
//   floats      produce() and finish(): a whole float32 sample
//   full_decode decoding the whole file to RGB with libjpeg-turbo and nothing else, for comparison
//   read, decode, resample, finish: the parts of `floats`
#include <algorithm>
#include <functional>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/pipeline/file_reader.h"
#include "src/pipeline/jpeg_decoder.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/seeds.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::pipeline {
namespace {

std::string specification(const std::vector<std::string>& files) {
  nlohmann::json spec;
  spec["version"] = 2;
  spec["source"] = {{"kind", "image_files"}, {"root", ""}};
  spec["ops"] = nlohmann::json::parse(R"([
      {"op": "decode_rgb"},
      {"op": "random_resized_crop", "size": [224, 224], "scale": [0.08, 1.0], "ratio": [0.75, 1.3333333333333333]},
      {"op": "random_horizontal_flip", "p": 0.5},
      {"op": "to_tensor"},
      {"op": "normalize", "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}])");
  std::vector<testing::File> table;
  table.reserve(files.size());
  for (const std::string& path : files) table.push_back({path, 0});
  return testing::specification(spec, table);
}

double cpu_seconds_of(const std::function<void()>& work) {
  const double before = thread_cpu_seconds();
  work();
  return thread_cpu_seconds() - before;
}

class Measurement {
 public:
  Measurement(std::shared_ptr<const NativePipeline> pipeline, const std::vector<std::string>& files)
      : pipeline_(std::move(pipeline)),
        files_(files),
        pixels_(pipeline_->wire_sample_bytes()),
        // As many slots as a batch has, so that finish() writes to memory that is not in the nearest cache.
        tensors_(kSlots * pipeline_->schema().fields()[0].sample_bytes) {}

  void repeat(std::uint64_t epoch) {
    keep_smallest("bytes", cpu_seconds_of([&] { produce_all(epoch, /*finish=*/false); }));
    workspace_.take_costs();
    const double floats = cpu_seconds_of([&] { produce_all(epoch, /*finish=*/true); });
    keep_smallest("floats", floats);
    const OpCosts costs = workspace_.take_costs();
    keep_smallest("read", costs.read.seconds);
    keep_smallest("decode", costs.decode.seconds);
    keep_smallest("resample", costs.resample.seconds);
    keep_smallest("finish", finish_seconds_);
    keep_smallest("full_decode", cpu_seconds_of([&] { decode_all(); }));
  }

  nlohmann::json seconds_per_1000() const {
    nlohmann::json result = smallest_;
    for (auto& value : result) value = value.get<double>() * 1000.0 / static_cast<double>(files_.size());
    result["images"] = files_.size();
    return result;
  }

 private:
  static constexpr std::size_t kSlots = 64;

  void produce_all(std::uint64_t epoch, bool finish) {
    finish_seconds_ = 0;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const auto made = pipeline_->produce(static_cast<std::int64_t>(i), sample_seed(1, epoch, i), pixels_, workspace_);
      if (!made) std::cerr << made.error().to_string() << '\n';
      if (!finish) continue;
      const std::size_t bytes = pipeline_->schema().fields()[0].sample_bytes;
      const double before = thread_cpu_seconds();
      pipeline_->finish(pixels_, 0, std::span(tensors_).subspan(i % kSlots * bytes, bytes));
      finish_seconds_ += thread_cpu_seconds() - before;
    }
  }

  void decode_all() {
    for (const std::string& path : files_) {
      if (!reader_->read(path, bytes_)) continue;
      const auto size = decoder_.open(bytes_);
      if (size) static_cast<void>(decoder_.decode({0, 0, size->height, size->width}).ok());
    }
  }

  void keep_smallest(const std::string& name, double seconds) {
    const double before = smallest_.value(name, std::numeric_limits<double>::max());
    smallest_[name] = std::min(before, seconds);
  }

  std::shared_ptr<const NativePipeline> pipeline_;
  const std::vector<std::string>& files_;
  std::shared_ptr<const FileReader> reader_ = make_system_file_reader();
  JpegDecoder decoder_{nullptr};  // libjpeg-turbo
  Workspace workspace_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint8_t> pixels_;
  std::vector<std::byte> tensors_;
  double finish_seconds_ = 0;
  nlohmann::json smallest_ = nlohmann::json::object();
};

int run(const std::vector<std::string>& files, int repetitions) {
  auto pipeline = NativePipeline::parse(specification(files));
  if (!pipeline || files.empty()) {
    std::cerr << (pipeline ? "no files" : pipeline.error().to_string()) << '\n';
    return 1;
  }
  Measurement measurement(*pipeline, files);
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    measurement.repeat(static_cast<std::uint64_t>(repetition));
  }
  std::cout << measurement.seconds_per_1000().dump() << '\n';
  return 0;
}

}  // namespace
}  // namespace sluice::pipeline

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::stoi(argv[1]) : 3;
  std::vector<std::string> files;
  for (std::string line; std::getline(std::cin, line);) files.push_back(line);
  return sluice::pipeline::run(files, repetitions);
}
