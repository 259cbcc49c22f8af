// The cache of source files that the environment asks for, and its metrics (docs/metrics.md, docs/designs/cache.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/cache/cached_files.h"
#include "src/executor/executor_metrics.h"

namespace prometheus {
class Registry;
}

namespace sluice::program {

struct CacheSettings {
  std::string directory;
  std::uint64_t bytes = 0;
  cache::Keep keep = cache::Keep::kAutomatic;
};

// From the values of SLUICE_CACHE_DIR, SLUICE_CACHE_BYTES and SLUICE_CACHE_FORM; null: not set, as is an empty one.
// nullopt: no cache. Errors: InvalidArgument naming the variable that is missing or has no such value.
Result<std::optional<CacheSettings>> read_cache_settings(const char* directory, const char* bytes,
                                                         const char* form = nullptr);

// Thread safety: none, but for what files() gives.
class SourceCache {
 public:
  // Null where no cache is asked for; also, with a line in the log, where the settings cannot be read: a cache is never
  // the reason that a job does not start. REQUIRES: registry and clock outlive the cache and its files().
  static std::unique_ptr<SourceCache> from_environment(prometheus::Registry& registry,
                                                       const executor::JobLabels& labels, const std::string& placement,
                                                       const Clock& clock);

  SourceCache(prometheus::Registry& registry, const executor::JobLabels& labels, const std::string& placement,
              std::shared_ptr<const cache::CachedFiles> files);
  ~SourceCache();

  std::shared_ptr<const pipeline::FileReader> files() const { return files_; }

  // Brings the metrics up to date. To be called every second.
  void tick();

 private:
  struct Series;
  const std::shared_ptr<const cache::CachedFiles> files_;
  std::unique_ptr<Series> series_;
};

}  // namespace sluice::program
