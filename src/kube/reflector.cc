#include "src/kube/reflector.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/logging.h"
#include "src/kube/resource_version.h"
#include "src/kube/watch.h"

namespace sluice::kube {
namespace {

constexpr int kMaxInternalErrors = 5;  // in a row, before a new list
constexpr int kMaxFailures = 10;       // in a row, before a new list
constexpr int kMaxOlderLists = 10;     // in a row, before we believe them
constexpr int kMaxOlderBookmarks = 2;  // in a row, a minute apart: a cache that lags has caught up before

// Whether this bookmark says that an initial collection is complete.
bool ends_initial_events(const Json& bookmark) {
  const auto metadata = bookmark.find("metadata");
  if (metadata == bookmark.end() || !metadata->is_object()) return false;
  const auto annotations = metadata->find("annotations");
  if (annotations == metadata->end() || !annotations->is_object()) return false;
  const auto mark = annotations->find("k8s.io/initial-events-end");
  return mark != annotations->end() && *mark == "true";
}

}  // namespace

Reflector::Reflector(const Clock& clock, UniformRandom random, Resource resource, ReflectorOptions options,
                     ReflectorTarget& target)
    : clock_(clock),
      random_(random),
      resource_(resource),
      options_(std::move(options)),
      target_(target),
      backoff_(options_.backoff, clock, std::move(random)),
      next_(options_.stream_initial_list ? Next::kInitialWatch : Next::kList),
      server_streams_lists_(options_.stream_initial_list) {}

ReflectorStep Reflector::next() {
  if (pause_) return {.kind = ReflectorStep::Kind::kPause, .pause = *std::exchange(pause_, std::nullopt)};
  if (next_ == Next::kList) {
    ListOptions list{options_.namespace_, options_.label_selector, options_.field_selector};
    list.continuation = continuation_;
    return {.kind = ReflectorStep::Kind::kList, .list = std::move(list)};
  }
  in_initial_phase_ = next_ == Next::kInitialWatch;
  watch_began_ = clock_.now();
  watch_had_events_ = false;
  return {.kind = ReflectorStep::Kind::kWatch, .watch = watch_options()};
}

WatchOptions Reflector::watch_options() {
  WatchOptions options{options_.namespace_, options_.label_selector, options_.field_selector};
  options.initial_events = in_initial_phase_;
  if (!in_initial_phase_) options.resource_version = resource_version_;
  options.timeout =
      options_.min_watch +
      std::chrono::seconds(static_cast<std::int64_t>(random_() * static_cast<double>(options_.min_watch.count())));
  return options;
}

ObjectPointer Reflector::slim(Json&& object) const {
  if (options_.trim) options_.trim(object);
  return std::make_shared<const Json>(std::move(object));
}

void Reflector::on_page(Result<ObjectList> page) {
  if (!page.ok()) {
    log_warning("kube", "list failed", {{"resource", resource_.plural}, {"error", page.error().to_string()}});
    // The history between two pages expired: begin anew, at once unless it happens again.
    const bool expired = page.error().code() == ErrorCode::kGone;
    if (!expired || expirations_++ > 0) pause();
    return list_again();
  }
  for (Json& item : page->items) target_.collect(slim(std::move(item)));
  continuation_ = std::move(page->continuation);
  if (!continuation_.empty()) return;
  // The list's version, never an item's: the newest item may be older than the list.
  finish_list(std::move(page->resource_version));
}

void Reflector::finish_list(std::string resource_version) {
  if (is_older_version(resource_version, resource_version_) && older_lists_++ < kMaxOlderLists) {
    log_warning("kube", "list refused: it is older than what was seen",
                {{"resource", resource_.plural}, {"version", resource_version}, {"seen", resource_version_}});
    pause();
    return list_again();
  }
  if (older_lists_ > kMaxOlderLists)
    log_error("kube", "the server's history has become shorter: starting over", {{"resource", resource_.plural}});
  older_lists_ = 0;
  internal_errors_ = 0;
  failures_ = 0;
  older_bookmarks_ = 0;
  resource_version_ = std::move(resource_version);
  next_ = Next::kWatch;
  target_.replace();
  target_.reached(resource_version_);
}

Result<void> Reflector::on_event(WatchEvent&& event) {
  watch_had_events_ = true;
  if (in_initial_phase_) return on_initial_event(std::move(event));
  internal_errors_ = 0;
  failures_ = 0;
  expirations_ = 0;
  const std::string version = resource_version_of(event.object);
  // A watch shows the changes after its version. An older one would take the collection back in time.
  if (is_older_version(version, resource_version_)) return on_older_event(event);
  older_bookmarks_ = 0;
  if (event.type == WatchEventType::kDeleted) {
    const ObjectKey key = key_of(event.object);
    target_.remove(key, slim(std::move(event.object)));
  } else if (event.type != WatchEventType::kBookmark) {
    target_.upsert(slim(std::move(event.object)));
  }
  if (version.empty()) return {};
  resource_version_ = version;
  target_.reached(version);
  return {};
}

Result<void> Reflector::on_older_event(const WatchEvent& event) {
  if (event.type != WatchEventType::kBookmark || ++older_bookmarks_ < kMaxOlderBookmarks) return {};
  log_warning("kube", "bookmarks are older than what was seen: listing again",
              {{"resource", resource_.plural}, {"seen", resource_version_}});
  list_again();
  return unavailable("the bookmarks are older than what was seen");
}

Result<void> Reflector::on_initial_event(WatchEvent&& event) {
  if (event.type == WatchEventType::kBookmark) {
    // Servers older than 1.27 ignore what they do not know, and send an ordinary bookmark sooner or later.
    if (!ends_initial_events(event.object)) return invalid_argument("this server does not stream initial lists");
    in_initial_phase_ = false;
    finish_list(resource_version_of(event.object));
    return next_ == Next::kWatch ? Result<void>() : unavailable("the initial list is older than what was seen");
  }
  if (event.type == WatchEventType::kDeleted) {
    target_.uncollect(key_of(event.object));
  } else {
    target_.collect(slim(std::move(event.object)));
  }
  return {};
}

void Reflector::on_watch_end(const Result<void>& end) {
  if (in_initial_phase_) return on_initial_watch_end(end);
  if (next_ != Next::kWatch) return;  // a refused initial list ended it: what is next is decided
  const bool lived = watch_had_events_ || clock_.now() - watch_began_ >= options_.short_watch;
  if (!end.ok()) return on_failed_watch(end.error(), watch_had_events_);
  if (lived) return;
  log_warning("kube", "watch ended at once without an event: listing again", {{"resource", resource_.plural}});
  pause();
  list_again();
}

void Reflector::start_over() {
  in_initial_phase_ = false;
  pause_.reset();
  list_again();
}

void Reflector::on_initial_watch_end(const Result<void>& end) {
  in_initial_phase_ = false;
  target_.discard();
  const Error error = end.ok() ? unavailable("ended before the collection was complete") : end.error();
  const bool is_unknown = error.code() == ErrorCode::kInvalidArgument;
  log(is_unknown ? LogLevel::kInfo : LogLevel::kWarning, "kube", "initial watch failed",
      {{"resource", resource_.plural}, {"error", error.to_string()}});
  const bool is_away = error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kResourceExhausted;
  if (is_unknown) server_streams_lists_ = false;
  if (!is_unknown) pause();
  const bool tries_again = is_away && !watch_had_events_ && !end.ok() && ++failures_ < kMaxFailures;
  next_ = tries_again ? Next::kInitialWatch : Next::kList;
}

void Reflector::on_failed_watch(const Error& error, bool had_events) {
  switch (error.code()) {
    case ErrorCode::kGone:
      log_info("kube", "history expired: listing again", {{"resource", resource_.plural}});
      if (expirations_++ > 0) pause();
      return list_again();
    case ErrorCode::kDeadlineExceeded:
    case ErrorCode::kUnavailable:
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kInternal:
      log_info("kube", "watch lost", {{"resource", resource_.plural}, {"error", error.to_string()}});
      return on_lost_watch(error.code(), had_events);
    default:
      log_warning("kube", "watch refused", {{"resource", resource_.plural}, {"error", error.to_string()}});
      pause();
      list_again();
  }
}

void Reflector::on_lost_watch(ErrorCode code, bool had_events) {
  const bool steady = clock_.now() - watch_began_ >= options_.steady_watch;
  if (!had_events && steady && code == ErrorCode::kDeadlineExceeded) return list_in_pages();
  // A connection that worked until now is worth an immediate try.
  if (!had_events && !steady) pause();
  // A server that keeps failing on this very version may be cured by another one.
  internal_errors_ = code == ErrorCode::kInternal && !had_events ? internal_errors_ + 1 : 0;
  failures_ = had_events || steady ? 0 : failures_ + 1;
  if (internal_errors_ >= kMaxInternalErrors) return list_again();
  if (failures_ >= kMaxFailures) list_in_pages();
}

void Reflector::list_in_pages() {
  list_again();
  next_ = Next::kList;
}

void Reflector::list_again() {
  target_.discard();
  continuation_.clear();
  next_ = server_streams_lists_ ? Next::kInitialWatch : Next::kList;
}

void Reflector::pause() { pause_ = backoff_.next(); }

void run_reflector(Reflector& reflector, const Client& client, const Clock& clock, std::stop_token stop) {
  while (!stop.stop_requested()) {
    ReflectorStep step = reflector.next();
    if (step.kind == ReflectorStep::Kind::kPause) {
      clock.sleep_for(step.pause, stop);
    } else if (step.kind == ReflectorStep::Kind::kList) {
      auto page = client.list_page(reflector.resource(), step.list, stop);
      if (!stop.stop_requested()) reflector.on_page(std::move(page));
    } else {
      const auto end = client.watch(
          reflector.resource(), step.watch, [&](WatchEvent&& event) { return reflector.on_event(std::move(event)); },
          stop);
      if (!stop.stop_requested()) reflector.on_watch_end(end);
    }
  }
}

}  // namespace sluice::kube
