#include "worker-image/program/source_cache.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <random>
#include <string_view>

#include "src/base/logging.h"
#include "src/cache/node_cache_client.h"
#include "src/cache/node_socket_line.h"
#include "src/cache/segment_store.h"
#include "src/executor/cgroup.h"
#include "worker-image/program/cache_job.h"

namespace sluice::program {
namespace {

using Labels = std::map<std::string, std::string>;

// Of the memory that is left now, the page cache is expected to have so much while a job runs; programs have the rest.
constexpr double kPageCacheShare = 0.5;

std::uint64_t page_cache_bytes() {
  const auto available = executor::memory_available_bytes();
  return available ? static_cast<std::uint64_t>(kPageCacheShare * static_cast<double>(*available)) : 0;
}

cache::JobId job_of_this_process(const executor::JobLabels& labels) {
  const auto variable = [](const char* name) -> std::string {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  std::random_device device;
  return cache_job(labels, variable, std::uint64_t{device()} << 32 | device());
}

}  // namespace

Result<std::optional<CacheSettings>> read_cache_settings(const CacheVariables& variables) {
  const auto text = [](const char* value) { return std::string_view(value == nullptr ? "" : value); };
  const std::string_view path = text(variables.directory);
  const std::string_view number = text(variables.bytes);
  const std::string_view socket = text(variables.socket);
  if (path.empty() && number.empty() && socket.empty()) return std::optional<CacheSettings>();
  CacheSettings settings{.directory = std::string(path), .socket = std::string(socket)};
  if (!socket.empty()) {
    if (!path.empty() || !number.empty())
      return invalid_argument(
          "SLUICE_CACHE_SOCKET is set beside SLUICE_CACHE_DIR or SLUICE_CACHE_BYTES: use one cache");
    if (!socket.starts_with('/'))
      return invalid_argument("SLUICE_CACHE_SOCKET=" + settings.socket + ": use the path of sluice-cache's socket");
  } else {
    if (path.empty()) return invalid_argument("SLUICE_CACHE_DIR is not set, and SLUICE_CACHE_BYTES is");
    if (number.empty()) return invalid_argument("SLUICE_CACHE_BYTES is not set, and SLUICE_CACHE_DIR is");
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), settings.bytes);
    if (error != std::errc() || end != number.data() + number.size() || settings.bytes == 0)
      return invalid_argument("SLUICE_CACHE_BYTES=" + std::string(number) + ": use a number of bytes");
  }
  const std::string_view name = text(variables.form);
  constexpr std::array kValues{cache::Keep::kAutomatic, cache::Keep::kSource, cache::Keep::kTranscoded,
                               cache::Keep::kOutput};
  const auto* keep = std::find_if(kValues.begin(), kValues.end(), [&](auto value) { return name_of(value) == name; });
  if (keep != kValues.end()) {
    settings.keep = *keep;
  } else if (!name.empty()) {
    return invalid_argument("SLUICE_CACHE_FORM=" + std::string(name) + ": use auto, source, transcoded or prefix");
  }
  return std::optional(std::move(settings));
}

std::unique_ptr<SourceCache> SourceCache::from_environment(prometheus::Registry& registry,
                                                           const executor::JobLabels& labels,
                                                           const std::string& placement, const Clock& clock) {
  const auto settings = read_cache_settings({.directory = std::getenv("SLUICE_CACHE_DIR"),
                                             .bytes = std::getenv("SLUICE_CACHE_BYTES"),
                                             .socket = std::getenv("SLUICE_CACHE_SOCKET"),
                                             .form = std::getenv("SLUICE_CACHE_FORM")});
  if (!settings.ok()) {
    log_warning("cache", "runs without the cache", {{"error", settings.error().message()}});
    return nullptr;
  }
  if (!settings->has_value()) return nullptr;
  const CacheSettings& wanted = **settings;
  const Place place = wanted.socket.empty() ? Place::kOwnDisk : Place::kNode;
  auto store = place == Place::kNode
                   ? cache::node_cache_at(cache::line_to(wanted.socket), job_of_this_process(labels), clock)
                   : cache::store_on(cache::make_system_disk(wanted.directory), {.bytes = wanted.bytes}, clock);
  auto files = std::make_shared<const cache::CachedFiles>(pipeline::make_system_file_reader(), std::move(store),
                                                          labels.job_namespace, clock, wanted.keep, page_cache_bytes());
  return std::make_unique<SourceCache>(registry, labels, placement, std::move(files), place);
}

SourceCache::SourceCache(prometheus::Registry& registry, const executor::JobLabels& labels,
                         const std::string& placement, std::shared_ptr<const cache::CachedFiles> files, Place place)
    : files_(std::move(files)),
      shown_(registry, {{"job_namespace", labels.job_namespace}, {"training_job", labels.job}},
             {{"placement", placement}}) {
  const auto counter = [&](const char* name, const char* help, const Labels& own, const cache::Count& count) {
    shown_.counter(name, help, own, count);
  };
  const auto gauge = [&](const char* name, const char* help, const Labels& own, const cache::Count& count) {
    shown_.gauge(name, help, own, count);
  };
  const auto pipelines = [&](const char* form, const cache::Count& count) {
    gauge("sluice_cache_pipelines", "Pipelines by the form that is chosen for their files.", {{"form", form}}, count);
  };
  const cache::Counters& counts = files_->counters();
  const auto form = [&](const char* name, const cache::FormCounters& of_form) {
    counter("sluice_cache_hits_total", "Files that came from the cache.", {{"form", name}}, of_form.hits);
    counter("sluice_cache_hit_bytes_total", "Bytes that came from the cache.", {{"form", name}}, of_form.hit_bytes);
    pipelines(name, of_form.pipelines);
  };
  form("source", counts.source);
  form("transcoded", counts.coefficients);
  form("prefix", counts.outputs);
  pipelines("none", counts.uncached_pipelines);
  pipelines("undecided", counts.undecided_pipelines);
  counter("sluice_cache_trials_total", "Samples that were made from each form to choose one.", {}, counts.trials);
  counter("sluice_cache_misses_total", "Files that the cache did not have.", {}, counts.misses);
  counter("sluice_cache_transcoded_total", "Files whose coefficients were made to be stored.", {}, counts.transcoded);
  const auto not_stored = [&](const char* reason, const cache::Count& count) {
    counter("sluice_cache_not_stored_total", "Files that were read and not stored.", {{"reason", reason}}, count);
  };
  not_stored("fast", counts.not_stored_fast);
  not_stored("changing", counts.not_stored_changing);
  not_stored("full", counts.not_stored_full);
  not_stored("failed", counts.not_stored_failed);
  const auto error = [&](const char* kind, const cache::Count& count) {
    counter("sluice_cache_errors_total", "What was wrong with the cache.", {{"kind", kind}}, count);
  };
  error("damaged", counts.damaged);
  if (place == Place::kNode) {
    error("gone", counts.node_gone);
    error("late", counts.node_late);
    error("busy", counts.node_busy);
    error("wrong", counts.node_wrong);
    return;  // what it has, it says itself
  }
  error("read", counts.read_errors);
  error("write", counts.write_errors);
  error("version", counts.other_versions);
  gauge("sluice_cache_bytes", "Bytes of the cache's files on disk.", {}, counts.bytes_on_disk);
  gauge("sluice_cache_files", "Source files that the cache has.", {}, counts.records);
}

}  // namespace sluice::program
