#include "src/kube/reflector.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/logging.h"
#include "src/kube/watch.h"

namespace sluice::kube {
namespace {

constexpr int kMaxInternalErrors = 5;  // in a row, before a new list

std::string resource_version_of(const Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return {};
  const auto version = metadata->find("resourceVersion");
  return version != metadata->end() && version->is_string() ? version->get<std::string>() : std::string();
}

ObjectPointer slim(Json&& object) {
  if (const auto metadata = object.find("metadata"); metadata != object.end() && metadata->is_object()) {
    metadata->erase("managedFields");
  }
  return std::make_shared<const Json>(std::move(object));
}

}  // namespace

Reflector::Reflector(const Client& client, const Clock& clock, UniformRandom random, Resource resource,
                     ReflectorOptions options, ReflectorTarget& target)
    : client_(client),
      clock_(clock),
      random_(random),
      resource_(resource),
      options_(std::move(options)),
      target_(target),
      backoff_(options_.backoff, clock, std::move(random)) {}

void Reflector::run(std::stop_token stop) {
  Next next = Next::kList;
  while (!stop.stop_requested()) {
    if (next == Next::kWatch) {
      next = watch(stop);
      continue;
    }
    const Result<void> listed = list(stop);
    if (listed.ok()) {
      next = Next::kWatch;
    } else if (!stop.stop_requested()) {
      log_warning("kube", "list failed", {{"resource", resource_.plural}, {"error", listed.error().to_string()}});
      pause(stop);
    }
  }
}

Result<void> Reflector::list(std::stop_token stop) {
  ListOptions options{options_.namespace_, options_.label_selector, options_.field_selector, resource_version_};
  // A limit together with a version would mean "exactly as of that version", and bypass the server's cache.
  if (!resource_version_.empty()) options.page_size = 0;
  Result<ObjectList> listed = client_.list(resource_, options, stop);
  if (!listed.ok() && listed.error().code() == ErrorCode::kGone) {
    // Expired between pages, or this server is behind what we have seen: ask for the most recent state, once.
    options.resource_version.clear();
    options.page_size = ListOptions().page_size;
    listed = client_.list(resource_, options, stop);
  }
  if (!listed.ok()) return listed.error();

  std::vector<ObjectPointer> objects;
  objects.reserve(listed->items.size());
  for (Json& item : listed->items) objects.push_back(slim(std::move(item)));
  // The list's version, never an item's: the newest item may be older than the list.
  resource_version_ = std::move(listed->resource_version);
  internal_errors_ = 0;
  target_.replace(std::move(objects));
  return {};
}

Reflector::Next Reflector::watch(std::stop_token stop) {
  WatchOptions options{options_.namespace_, options_.label_selector, options_.field_selector, resource_version_};
  options.timeout =
      options_.min_watch +
      std::chrono::seconds(static_cast<std::int64_t>(random_() * static_cast<double>(options_.min_watch.count())));
  bool had_events = false;
  const Clock::TimePoint started = clock_.now();
  const Result<void> watched = client_.watch(
      resource_, options,
      [&](WatchEvent&& event) {
        had_events = true;
        apply(std::move(event));
      },
      stop);
  if (stop.stop_requested()) return Next::kWatch;
  if (!watched.ok()) return after_failed_watch(watched.error(), had_events, stop);
  if (had_events || clock_.now() - started >= options_.short_watch) return Next::kWatch;

  log_warning("kube", "watch ended at once without an event: listing again", {{"resource", resource_.plural}});
  pause(stop);
  return Next::kList;
}

Reflector::Next Reflector::after_failed_watch(const Error& error, bool had_events, std::stop_token stop) {
  switch (error.code()) {
    case ErrorCode::kGone:
      log_info("kube", "history expired: listing again", {{"resource", resource_.plural}});
      resource_version_.clear();
      return Next::kList;
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kUnavailable:
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kInternal:
      log_info("kube", "watch lost", {{"resource", resource_.plural}, {"error", error.to_string()}});
      // A connection that worked until now is worth an immediate try.
      if (!had_events) pause(stop);
      // A server that keeps failing on this very version may be cured by another one.
      internal_errors_ = error.code() == ErrorCode::kInternal && !had_events ? internal_errors_ + 1 : 0;
      return internal_errors_ < kMaxInternalErrors ? Next::kWatch : Next::kList;
    default:
      log_warning("kube", "watch refused", {{"resource", resource_.plural}, {"error", error.to_string()}});
      pause(stop);
      return Next::kList;
  }
}

void Reflector::pause(std::stop_token stop) { clock_.sleep_for(backoff_.next(), std::move(stop)); }

void Reflector::apply(WatchEvent&& event) {
  const std::string version = resource_version_of(event.object);
  if (event.type == WatchEventType::kDeleted) {
    const ObjectKey key = key_of(event.object);
    target_.remove(key, slim(std::move(event.object)));
  } else if (event.type != WatchEventType::kBookmark) {
    target_.upsert(slim(std::move(event.object)));
  }
  if (!version.empty()) resource_version_ = version;
}

}  // namespace sluice::kube
