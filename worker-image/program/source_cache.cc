#include "worker-image/program/source_cache.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "src/base/logging.h"
#include "src/executor/cgroup.h"

namespace sluice::program {
namespace {

using Labels = std::map<std::string, std::string>;

// Of the memory that is left now, the page cache is expected to have so much while a job runs; programs have the rest.
constexpr double kPageCacheShare = 0.5;

std::uint64_t page_cache_bytes() {
  const auto available = executor::memory_available_bytes();
  return available ? static_cast<std::uint64_t>(kPageCacheShare * static_cast<double>(*available)) : 0;
}

}  // namespace

Result<std::optional<CacheSettings>> read_cache_settings(const char* directory, const char* bytes, const char* form) {
  const std::string_view path = directory == nullptr ? "" : directory;
  const std::string_view number = bytes == nullptr ? "" : bytes;
  if (path.empty() && number.empty()) return std::optional<CacheSettings>();
  if (path.empty()) return invalid_argument("SLUICE_CACHE_DIR is not set, and SLUICE_CACHE_BYTES is");
  if (number.empty()) return invalid_argument("SLUICE_CACHE_BYTES is not set, and SLUICE_CACHE_DIR is");
  CacheSettings settings{.directory = std::string(path)};
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), settings.bytes);
  if (error != std::errc() || end != number.data() + number.size() || settings.bytes == 0)
    return invalid_argument("SLUICE_CACHE_BYTES=" + std::string(number) + ": use a number of bytes");
  const std::string_view name = form == nullptr ? "" : form;
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
  const auto settings = read_cache_settings(std::getenv("SLUICE_CACHE_DIR"), std::getenv("SLUICE_CACHE_BYTES"),
                                            std::getenv("SLUICE_CACHE_FORM"));
  if (!settings.ok()) {
    log_warning("cache", "runs without the cache", {{"error", settings.error().message()}});
    return nullptr;
  }
  if (!settings->has_value()) return nullptr;
  const CacheSettings& wanted = **settings;
  auto files = std::make_shared<const cache::CachedFiles>(
      pipeline::make_system_file_reader(), cache::make_system_disk(wanted.directory),
      cache::Limits{.bytes = wanted.bytes}, labels.job_namespace, clock, wanted.keep, page_cache_bytes());
  return std::make_unique<SourceCache>(registry, labels, placement, std::move(files));
}

struct SourceCache::Series {
  struct Counted {
    prometheus::Counter* series;
    const cache::Count* count;
  };
  struct Shown {
    prometheus::Gauge* series;
    const cache::Count* count;
  };
  std::vector<Counted> counters;
  std::vector<Shown> gauges;
};

SourceCache::SourceCache(prometheus::Registry& registry, const executor::JobLabels& labels,
                         const std::string& placement, std::shared_ptr<const cache::CachedFiles> files)
    : files_(std::move(files)), series_(std::make_unique<Series>()) {
  const Labels constant{{"job_namespace", labels.job_namespace}, {"training_job", labels.job}};
  const auto with_placement = [&](Labels own) {
    own.emplace("placement", placement);
    return own;
  };
  const auto counter = [&](const char* name, const char* help, const Labels& own, const cache::Count& count) {
    auto& family = prometheus::BuildCounter().Name(name).Help(help).Labels(constant).Register(registry);
    series_->counters.push_back({&family.Add(with_placement(own)), &count});
  };
  const auto gauge = [&](const char* name, const char* help, const Labels& own, const cache::Count& count) {
    auto& family = prometheus::BuildGauge().Name(name).Help(help).Labels(constant).Register(registry);
    series_->gauges.push_back({&family.Add(with_placement(own)), &count});
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
    counter("sluice_cache_errors_total", "What was wrong with the cache's disk.", {{"kind", kind}}, count);
  };
  error("damaged", counts.damaged);
  error("read", counts.read_errors);
  error("write", counts.write_errors);
  error("version", counts.other_versions);
  gauge("sluice_cache_bytes", "Bytes of the cache's files on disk.", {}, counts.bytes_on_disk);
  gauge("sluice_cache_files", "Source files that the cache has.", {}, counts.records);
}

SourceCache::~SourceCache() = default;

void SourceCache::tick() {
  for (const auto& [series, count] : series_->counters)
    series->Increment(static_cast<double>(*count) - series->Value());
  for (const auto& [series, count] : series_->gauges) series->Set(static_cast<double>(*count));
}

}  // namespace sluice::program
