// What a program's native pipelines read: files and objects of stores, through a cache where one is asked for.
#pragma once

#include "src/object_store/object_files.h"
#include "worker-image/program/kept_results.h"
#include "worker-image/program/shown_counts.h"
#include "worker-image/program/source_cache.h"

namespace sluice::program {

// Thread safety: none, but for what files() gives.
class SourceFiles {
 public:
  // As SourceCache::from_environment. To be destroyed behind whatever has files().
  SourceFiles(prometheus::Registry& registry, const executor::JobLabels& labels, const std::string& placement,
              const Clock& clock);
  ~SourceFiles();

  std::shared_ptr<const pipeline::FileReader> files() const;

  // Results of functions, for Python executors. Null: there is no cache.
  std::shared_ptr<executor::KeptCalls> kept() const { return kept_; }

  // Brings the metrics up to date. To be called every second.
  void tick();

 private:
  std::shared_ptr<const object_store::ObjectFiles> objects_;
  std::unique_ptr<SourceCache> cache_;
  std::shared_ptr<executor::KeptCalls> kept_;
  ShownCounts shown_;
};

}  // namespace sluice::program
