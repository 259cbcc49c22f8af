// The cache of source files that the environment asks for, and its metrics (docs/metrics.md, docs/designs/cache.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/cache/cached_files.h"
#include "src/executor/executor_metrics.h"
#include "worker-image/program/shown_counts.h"

namespace sluice::program {

struct CacheSettings {
  std::string directory;  // empty: the node's cache is used
  std::uint64_t bytes = 0;
  std::string socket;   // of the node's cache
  std::string service;  // HOST:PORT of the node's cache in a cluster
  std::string service_files;
  pipeline::SharedVolumes volumes;
  cache::Keep keep = cache::Keep::kAutomatic;
};

// The values of SLUICE_CACHE_DIR, _BYTES, _SOCKET, _FORM, _SERVICE, _SERVICE_FILES and _VOLUMES; null: not set, as is
// an empty one.
struct CacheVariables {
  const char* directory = nullptr;
  const char* bytes = nullptr;
  const char* socket = nullptr;
  const char* form = nullptr;
  const char* service = nullptr;
  const char* service_files = nullptr;
  const char* volumes = nullptr;
};

// nullopt: no cache. The operator names the service to all jobs; a job that names a cache of its own uses that. Errors:
// InvalidArgument naming the variable that is missing, too much, or has no such value.
Result<std::optional<CacheSettings>> read_cache_settings(const CacheVariables& variables);

// Thread safety: none, but for what files() gives.
class SourceCache {
 public:
  // Null where no cache is asked for; also, with a line in the log, where the settings cannot be read: a cache is never
  // the reason that a job does not start. REQUIRES: registry and clock outlive the cache and its files().
  using SourceOf = std::function<std::shared_ptr<const pipeline::FileReader>(pipeline::SharedVolumes)>;
  static std::unique_ptr<SourceCache> from_environment(prometheus::Registry& registry,
                                                       const executor::JobLabels& labels, const std::string& placement,
                                                       const Clock& clock, const SourceOf& source_of);

  // Where the records are. The metrics differ: what the node's cache holds, it tells itself.
  enum class Place { kOwnDisk, kNode };

  SourceCache(prometheus::Registry& registry, const executor::JobLabels& labels, const std::string& placement,
              std::shared_ptr<const cache::CachedFiles> files, Place place);

  std::shared_ptr<const cache::CachedFiles> files() const { return files_; }

  // Brings the metrics up to date. To be called every second.
  void tick() { shown_.tick(); }

 private:
  const std::shared_ptr<const cache::CachedFiles> files_;
  ShownCounts shown_;
};

}  // namespace sluice::program
