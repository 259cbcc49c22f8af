// sluice-cache-bench MODE DIRECTORY [DELAY_MS [PIPELINE]] < list of JPEG files, one a line: what the cache of source
// files costs and gives a native pipeline on one thread. Three epochs, one JSON object a line.
//   plain       without a cache
//   cached      through a cache of 10 GB in DIRECTORY
//   transcoded  the same, and the cache keeps coefficients of JPEG files
//   prefix      the same, and the cache keeps what the operations before the first random one make
// PIPELINE is one of train (RandomResizedCrop(224), flip), crop (Resize(256), RandomCrop(224), flip) and validation
// (Resize(256), CenterCrop(224)); all normalise to float32.
// DELAY_MS is added to each read of a file, as a slow file system would. With 0 the files are as fast as the cache, and
// the source's bytes are not stored.
#include <charconv>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "src/cache/cached_files.h"
#include "src/pipeline/native_pipeline.h"
#include "src/pipeline/seeds.h"
#include "src/pipeline/testing/specification.h"

namespace sluice::cache {
namespace {

constexpr int kEpochs = 3;
const std::map<std::string, Keep> kModes{
    {"cached", Keep::kSource}, {"transcoded", Keep::kTranscoded}, {"prefix", Keep::kOutput}};

class DelayedFiles final : public pipeline::FileReader {
 public:
  explicit DelayedFiles(std::chrono::milliseconds delay) : delay_(delay) {}
  Result<void> read(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const override {
    ++reads;
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
    return files_->read(part, bytes);
  }
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return files_->identify(path); }

  mutable int reads = 0;

 private:
  const std::chrono::milliseconds delay_;
  const std::shared_ptr<const pipeline::FileReader> files_ = pipeline::make_system_file_reader();
};

// The operations on images, by the name of the pipeline; empty: no such name.
std::string image_ops(std::string_view name) {
  if (name == "train") {
    return R"({"op": "random_resized_crop", "size": [224, 224], "scale": [0.08, 1.0], "ratio": [0.75, 1.3333333333333333]},
        {"op": "random_horizontal_flip", "p": 0.5},)";
  }
  if (name == "crop") {
    return R"({"op": "resize", "size": [256]}, {"op": "random_crop", "size": [224, 224]},
        {"op": "random_horizontal_flip", "p": 0.5},)";
  }
  if (name == "validation") return R"({"op": "resize", "size": [256]}, {"op": "center_crop", "size": [224, 224]},)";
  return "";
}

std::string specification(const std::vector<std::string>& paths, std::string_view name) {
  nlohmann::json spec;
  spec["version"] = 2;
  spec["source"] = {{"kind", "image_files"}, {"root", ""}};
  spec["ops"] = nlohmann::json::parse(R"([{"op": "decode_rgb"}, )" + image_ops(name) + R"({"op": "to_tensor"},
      {"op": "normalize", "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}])");
  std::vector<pipeline::testing::File> table;
  table.reserve(paths.size());
  for (const std::string& path : paths) table.push_back({path, 0});
  return pipeline::testing::specification(spec, table);
}

struct Epoch {
  std::uint64_t sum = 0;  // of all bytes; the epochs draw the same numbers, so that it is the same for each
  double cpu_seconds = 0;
};

Epoch run_epoch(const pipeline::NativePipeline& native, pipeline::Workspace& workspace) {
  constexpr std::size_t kSlots = 64;  // as many as a batch has, so that tensors are not in the nearest cache
  const std::size_t tensor_bytes = native.schema().fields()[0].sample_bytes;
  std::vector<std::uint8_t> pixels(native.wire_sample_bytes());
  std::vector<std::byte> tensors(kSlots * tensor_bytes);
  Epoch epoch;
  for (std::size_t i = 0; i < native.sample_count(); ++i) {
    const double before = thread_cpu_seconds();
    const auto made = native.produce(static_cast<std::int64_t>(i), pipeline::sample_seed(1, 0, i), pixels, workspace);
    if (!made.ok()) std::cerr << made.error().to_string() << '\n';
    native.finish(pixels, std::span(tensors).subspan(i % kSlots * tensor_bytes, tensor_bytes));
    epoch.cpu_seconds += thread_cpu_seconds() - before;
    epoch.sum = std::accumulate(pixels.begin(), pixels.end(), epoch.sum * 31);
  }
  return epoch;
}

int run(const std::string& mode, const std::string& directory, std::chrono::milliseconds delay,
        const std::string& pipeline_name, const std::vector<std::string>& paths) {
  const SystemClock clock;
  const auto source = std::make_shared<const DelayedFiles>(delay);
  std::shared_ptr<const CachedFiles> cache;
  if (mode != "plain") {
    const Limits limits{.bytes = 10'000'000'000};
    const Keep keep = kModes.at(mode);
    cache = std::make_shared<const CachedFiles>(source, make_system_disk(directory), limits, "", clock, keep);
    if (!cache->wait_until_opened()) return 1;
  }
  std::shared_ptr<const pipeline::FileReader> files = source;
  if (cache) files = cache;
  const auto native = pipeline::NativePipeline::parse(specification(paths, pipeline_name), files);
  if (!native.ok()) {
    std::cerr << native.error().to_string() << '\n';
    return 1;
  }
  pipeline::Workspace workspace;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const int reads = source->reads;
    const auto started = clock.now();
    const Epoch done = run_epoch(**native, workspace);
    nlohmann::json line{{"epoch", epoch}, {"files", paths.size()}, {"sum_of_bytes", done.sum}};
    line["cpu_seconds"] = done.cpu_seconds;
    if (cache) line["bytes_on_disk"] = cache->counters().bytes_on_disk.load();
    line["seconds"] = std::chrono::duration<double>(clock.now() - started).count();
    line["source_reads"] = source->reads - reads;
    std::cout << line.dump() << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace sluice::cache

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  int delay = 0;
  if (words.size() > 2) std::from_chars(words[2].data(), words[2].data() + words[2].size(), delay);
  const std::string pipeline = words.size() > 3 ? words[3] : "train";
  if (words.size() < 2 || words.size() > 4 || (words[0] != "plain" && !sluice::cache::kModes.contains(words[0])) ||
      delay < 0 || sluice::cache::image_ops(pipeline).empty()) {
    std::cerr
        << "usage: sluice-cache-bench plain|cached|transcoded|prefix DIRECTORY [DELAY_MS [train|crop|validation]] "
           "< FILES\n";
    return 2;
  }
  std::vector<std::string> paths;
  for (std::string path; std::getline(std::cin, path);) paths.push_back(path);
  return sluice::cache::run(words[0], words[1], std::chrono::milliseconds(delay), pipeline, paths);
}
