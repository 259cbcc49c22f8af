#include "worker-image/program/source_files.h"

#include <random>

#include "src/object_store/beast_network.h"

namespace sluice::program {
namespace {

// The pauses between attempts, so that many processes do not come back together. Used on one thread.
std::function<double()> new_random() {
  std::random_device device;
  return [engine = std::mt19937_64(std::uint64_t{device()} << 32 | device())]() mutable {
    return std::uniform_real_distribution<double>(0, 1)(engine);
  };
}

}  // namespace

SourceFiles::SourceFiles(prometheus::Registry& registry, const executor::JobLabels& labels,
                         const std::string& placement, const Clock& clock) {
  const auto source_of = [&](pipeline::SharedVolumes volumes) {
    auto client = std::make_unique<object_store::RangeClient>(object_store::make_beast_network(), clock, new_random(),
                                                              object_store::read_text_of_disk());
    objects_ = std::make_shared<const object_store::ObjectFiles>(pipeline::make_system_file_reader(std::move(volumes)),
                                                                 std::move(client));
    return objects_;
  };
  cache_ = SourceCache::from_environment(registry, labels, placement, clock, source_of);
  if (cache_ == nullptr) {
    source_of({});
  } else {
    kept_ = kept_results(cache_->files(), clock);
  }
}

// Batches that wait for a store hold their pipeline, and so its files.
SourceFiles::~SourceFiles() { objects_->end(); }

std::shared_ptr<const pipeline::FileReader> SourceFiles::files() const {
  if (cache_ != nullptr) return cache_->files();
  return objects_;
}

void SourceFiles::tick() {
  if (cache_ != nullptr) cache_->tick();
}

}  // namespace sluice::program
