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

void show_requests(ShownCounts& shown, const object_store::Counters& counts) {
  shown.counter("sluice_object_requests_total", "Requests to stores of objects.", {}, counts.requests);
  shown.counter("sluice_object_bytes_total", "Bytes of objects that have come.", {}, counts.bytes);
  const auto failed = [&](const char* reason, const object_store::Count& count) {
    shown.counter("sluice_object_failed_requests_total", "Requests that had to be sent again.", {{"reason", reason}},
                  count);
  };
  failed("throttled", counts.refused);
  failed("other", counts.failed);
  shown.counter("sluice_object_hedged_requests_total", "Late requests that were sent once more.", {}, counts.hedged);
  shown.counter("sluice_object_useful_hedges_total", "Of these: the second answer came first.", {},
                counts.hedges_useful);
}

}  // namespace

SourceFiles::SourceFiles(prometheus::Registry& registry, const executor::JobLabels& labels,
                         const std::string& placement, const Clock& clock)
    : shown_(registry, {{"job_namespace", labels.job_namespace}, {"training_job", labels.job}},
             {{"placement", placement}}) {
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
  show_requests(shown_, objects_->counters());
}

// Batches that wait for a store hold their pipeline, and so its files.
SourceFiles::~SourceFiles() { objects_->end(); }

std::shared_ptr<const pipeline::FileReader> SourceFiles::files() const {
  if (cache_ != nullptr) return cache_->files();
  return objects_;
}

void SourceFiles::tick() {
  if (cache_ != nullptr) cache_->tick();
  shown_.tick();
}

}  // namespace sluice::program
