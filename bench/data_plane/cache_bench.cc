// sluice-cache-bench MODE DIRECTORY [DELAY_MS] < list of JPEG files, one a line: what the cache of source files costs
// and gives the native training pipeline (RandomResizedCrop(224), normalise) on one thread. Three epochs, one JSON
// object a line.
//   plain    without a cache
//   cached   through a cache of 10 GB in DIRECTORY
// DELAY_MS is added to each read of a file, as a slow file system would. With 0 the files are as fast as the cache, and
// nothing is stored.
#include <charconv>
#include <iostream>
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

class DelayedFiles final : public pipeline::FileReader {
 public:
  explicit DelayedFiles(std::chrono::milliseconds delay) : delay_(delay) {}
  Result<void> read(const std::string& path, std::vector<std::uint8_t>& bytes) const override {
    ++reads;
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
    return files_->read(path, bytes);
  }
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return files_->identify(path); }

  mutable int reads = 0;

 private:
  const std::chrono::milliseconds delay_;
  const std::shared_ptr<const pipeline::FileReader> files_ = pipeline::make_system_file_reader();
};

std::string specification(const std::vector<std::string>& paths) {
  nlohmann::json spec;
  spec["version"] = 2;
  spec["source"] = {{"kind", "image_files"}, {"root", ""}};
  spec["ops"] = nlohmann::json::parse(R"([{"op": "decode_rgb"},
      {"op": "random_resized_crop", "size": [224, 224], "scale": [0.08, 1.0], "ratio": [0.75, 1.3333333333333333]},
      {"op": "to_tensor"}, {"op": "normalize", "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}])");
  std::vector<pipeline::testing::File> table;
  table.reserve(paths.size());
  for (const std::string& path : paths) table.push_back({path, 0});
  return pipeline::testing::specification(spec, table);
}

// Of all bytes of an epoch; the epochs draw the same numbers, so that it is the same for each.
std::uint64_t run_epoch(const pipeline::NativePipeline& native, pipeline::Workspace& workspace) {
  std::vector<std::uint8_t> pixels(native.wire_sample_bytes());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < native.sample_count(); ++i) {
    const auto made = native.produce(static_cast<std::int64_t>(i), pipeline::sample_seed(1, 0, i), pixels, workspace);
    if (!made.ok()) std::cerr << made.error().to_string() << '\n';
    sum = std::accumulate(pixels.begin(), pixels.end(), sum * 31);
  }
  return sum;
}

int run(bool cached, const std::string& directory, std::chrono::milliseconds delay,
        const std::vector<std::string>& paths) {
  const SystemClock clock;
  const auto source = std::make_shared<const DelayedFiles>(delay);
  std::shared_ptr<const CachedFiles> cache;
  if (cached) {
    const Limits limits{.bytes = 10'000'000'000};
    cache = std::make_shared<const CachedFiles>(source, make_system_disk(directory), limits, "", clock);
    if (!cache->wait_until_opened()) return 1;
  }
  std::shared_ptr<const pipeline::FileReader> files = source;
  if (cache) files = cache;
  const auto native = pipeline::NativePipeline::parse(specification(paths), files);
  if (!native.ok()) {
    std::cerr << native.error().to_string() << '\n';
    return 1;
  }
  pipeline::Workspace workspace;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const int reads = source->reads;
    const auto started = clock.now();
    const double cpu_seconds = thread_cpu_seconds();
    const std::uint64_t sum = run_epoch(**native, workspace);
    nlohmann::json line{{"epoch", epoch}, {"files", paths.size()}, {"sum_of_bytes", sum}};
    line["cpu_seconds"] = thread_cpu_seconds() - cpu_seconds;
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
  if (words.size() == 3) std::from_chars(words[2].data(), words[2].data() + words[2].size(), delay);
  if (words.size() < 2 || words.size() > 3 || (words[0] != "plain" && words[0] != "cached") || delay < 0) {
    std::cerr << "usage: sluice-cache-bench plain|cached DIRECTORY [DELAY_MS] < FILES\n";
    return 2;
  }
  std::vector<std::string> paths;
  for (std::string path; std::getline(std::cin, path);) paths.push_back(path);
  return sluice::cache::run(words[0] == "cached", words[1], std::chrono::milliseconds(delay), paths);
}
