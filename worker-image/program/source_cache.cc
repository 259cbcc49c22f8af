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

std::string_view text(const char* value) { return value == nullptr ? "" : value; }

// Of a folder of this process alone.
Result<void> read_own_disk(const CacheVariables& variables, CacheSettings& settings) {
  const std::string_view number = text(variables.bytes);
  if (settings.directory.empty()) return invalid_argument("SLUICE_CACHE_DIR is not set, and SLUICE_CACHE_BYTES is");
  if (number.empty()) return invalid_argument("SLUICE_CACHE_BYTES is not set, and SLUICE_CACHE_DIR is");
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), settings.bytes);
  if (error != std::errc() || end != number.data() + number.size() || settings.bytes == 0)
    return invalid_argument("SLUICE_CACHE_BYTES=" + std::string(number) + ": use a number of bytes");
  return {};
}

Result<void> read_service(const CacheVariables& variables, CacheSettings& settings) {
  settings.service = text(variables.service);
  settings.service_files = text(variables.service_files);
  if (settings.service_files.empty())
    return invalid_argument("SLUICE_CACHE_SERVICE_FILES is not set, and SLUICE_CACHE_SERVICE is");
  if (text(variables.volumes).empty()) return {};
  auto volumes = pipeline::SharedVolumes::parse(text(variables.volumes));
  if (!volumes.ok()) return volumes.error().with_context("SLUICE_CACHE_VOLUMES");
  settings.volumes = *std::move(volumes);
  return {};
}

Result<void> read_place(const CacheVariables& variables, CacheSettings& settings) {
  settings.directory = text(variables.directory);
  settings.socket = text(variables.socket);
  const bool is_own = !settings.directory.empty() || !text(variables.bytes).empty();
  if (settings.socket.empty()) return is_own ? read_own_disk(variables, settings) : read_service(variables, settings);
  if (is_own)
    return invalid_argument("SLUICE_CACHE_SOCKET is set beside SLUICE_CACHE_DIR or SLUICE_CACHE_BYTES: use one cache");
  if (!settings.socket.starts_with('/'))
    return invalid_argument("SLUICE_CACHE_SOCKET=" + settings.socket + ": use the path of sluice-cache's socket");
  return {};
}

// No other process has it, on whatever machine.
std::string new_own_name() {
  std::random_device random;
  std::string name = "process ";
  for (int word = 0; word < 4; ++word) name += std::to_string(1'000'000'000 + std::uint64_t{random()});
  return name + ":";
}

cache::OpenStore store_of(const CacheSettings& settings, const executor::JobLabels& labels, const Clock& clock) {
  if (!settings.socket.empty())
    return cache::node_cache_at(cache::line_to(settings.socket), job_of_this_process(labels), clock);
  if (!settings.service.empty())
    return cache::node_cache_at(cache::line_to(settings.service, settings.service_files), job_of_this_process(labels),
                                clock);
  return cache::store_on(cache::make_system_disk(settings.directory), {.bytes = settings.bytes}, clock);
}

}  // namespace

Result<std::optional<CacheSettings>> read_cache_settings(const CacheVariables& variables) {
  const auto wanted = {variables.directory, variables.bytes, variables.socket, variables.service};
  if (std::all_of(wanted.begin(), wanted.end(), [](const char* value) { return text(value).empty(); }))
    return std::optional<CacheSettings>();
  CacheSettings settings;
  SLUICE_TRY_VOID(read_place(variables, settings));
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
                                                           const std::string& placement, const Clock& clock,
                                                           const SourceOf& source_of) {
  const auto settings = read_cache_settings({.directory = std::getenv("SLUICE_CACHE_DIR"),
                                             .bytes = std::getenv("SLUICE_CACHE_BYTES"),
                                             .socket = std::getenv("SLUICE_CACHE_SOCKET"),
                                             .form = std::getenv("SLUICE_CACHE_FORM"),
                                             .service = std::getenv("SLUICE_CACHE_SERVICE"),
                                             .service_files = std::getenv("SLUICE_CACHE_SERVICE_FILES"),
                                             .volumes = std::getenv("SLUICE_CACHE_VOLUMES")});
  if (!settings.ok()) {
    log_warning("cache", "runs without the cache", {{"error", settings.error().message()}});
    return nullptr;
  }
  if (!settings->has_value()) return nullptr;
  const CacheSettings& wanted = **settings;
  const Place place = wanted.directory.empty() ? Place::kNode : Place::kOwnDisk;
  auto files = std::make_shared<const cache::CachedFiles>(source_of(wanted.volumes), store_of(wanted, labels, clock),
                                                          labels.job_namespace, clock, wanted.keep, page_cache_bytes(),
                                                          wanted.service.empty() ? "" : new_own_name());
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
  const auto hits = [&](const char* name, const cache::FormCounters& of_form) {
    counter("sluice_cache_hits_total", "Files and results that came from the cache.", {{"form", name}}, of_form.hits);
    counter("sluice_cache_hit_bytes_total", "Bytes that came from the cache.", {{"form", name}}, of_form.hit_bytes);
  };
  const auto form = [&](const char* name, const cache::FormCounters& of_form) {
    hits(name, of_form);
    pipelines(name, of_form.pipelines);
  };
  form("source", counts.source);
  form("transcoded", counts.coefficients);
  form("prefix", counts.outputs);
  hits("result", counts.results);
  pipelines("none", counts.uncached_pipelines);
  pipelines("undecided", counts.undecided_pipelines);
  counter("sluice_cache_trials_total", "Samples that were made from each form to choose one.", {}, counts.trials);
  counter("sluice_cache_misses_total", "Files and results that the cache did not have.", {}, counts.misses);
  counter("sluice_cache_transcoded_total", "Files whose coefficients were made to be stored.", {}, counts.transcoded);
  const auto not_stored = [&](const char* reason, const cache::Count& count) {
    counter("sluice_cache_not_stored_total", "Files and results that were made and not stored.", {{"reason", reason}},
            count);
  };
  not_stored("fast", counts.not_stored_fast);
  not_stored("changing", counts.not_stored_changing);
  not_stored("full", counts.not_stored_full);
  not_stored("failed", counts.not_stored_failed);
  const auto error = [&](const char* kind, const cache::Count& count) {
    counter("sluice_cache_errors_total", "What was wrong with the cache.", {{"kind", kind}}, count);
  };
  error("damaged", counts.damaged);
  error("late", counts.node_late);
  if (place == Place::kNode) {
    error("gone", counts.node_gone);
    error("busy", counts.node_busy);
    error("wrong", counts.node_wrong);
    error("refused", counts.node_refused);
    return;  // what it has, it says itself
  }
  error("read", counts.read_errors);
  error("write", counts.write_errors);
  error("version", counts.other_versions);
  gauge("sluice_cache_bytes", "Bytes of the cache's files on disk.", {}, counts.bytes_on_disk);
  gauge("sluice_cache_files", "Source files that the cache has.", {}, counts.records);
}

}  // namespace sluice::program
