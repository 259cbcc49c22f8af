// Keeps a target up to date with a collection of the API server: list, then watch, for ever. A state machine without
// I/O: next() names the next request, and the on_...() methods take its outcome. run_reflector() is the thread's loop
// around it; a simulation drives it by itself.
//
// Rules (client-go, tools/cache/reflector.go; where we differ, why):
//  - The first state comes as a watch that begins with the whole collection (KEP-3157), collected aside until the
//    server says that it is complete; a server that does not know this, or fails at it, is asked for a list.
//  - A list names no resourceVersion, so it is never older than anything seen (KEP-2340; client-go asks for 0, which
//    may be), and comes in pages, so that no answer is large.
//  - The resourceVersion to watch from is the list's, then every event's, bookmarks included, but for those of the
//    initial collection, which has no order. It never moves backwards (versions of one resource compare as numbers,
//    KEP-5504): a list older than the seen version is refused, ten times; then the server's history must have been
//    restored, and its word counts.
//  - A watch lasts uniform [300, 600) s, so that not all clients come back at the same time.
//  - Server away or overloaded (refused, 429, 5xx): wait, watch again; listing would make it worse. Only after five
//    internal errors in a row, or ten failures of any kind: list, as it may be watches alone that do not pass a proxy.
//  - A connection lost after ten seconds: watch again at once, as load balancers cut what is idle.
//  - A watch without a byte for its whole silence limit, bookmarks included: list at once, in pages. A proxy that holds
//    bytes back lets the list through.
//  - A second bookmark in a row that is older than what was seen: list, as the history must have been restored.
//  - Gone: list at once; when it happens again before an event came, wait first.
//  - A watch that ends within one second without an event: wait, list (some servers drop a stale watch without saying
//    Gone). So too after an event that cannot be read.
//  - A clean end, or a connection lost after events: watch again, at once if it lived for a second.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/kube/backoff.h"
#include "src/kube/client.h"
#include "src/kube/resource.h"

namespace sluice::kube {

// The collection that a reflector keeps up to date.
class ReflectorTarget {
 public:
  virtual ~ReflectorTarget() = default;
  // A new collection comes: its objects in any order, some of them again or away again. Then replace() (objects that
  // were not collected are gone) or discard().
  virtual void collect(ObjectPointer object) = 0;
  virtual void uncollect(const ObjectKey& key) = 0;
  virtual void discard() = 0;
  virtual void replace() = 0;
  virtual void upsert(ObjectPointer object) = 0;
  virtual void remove(const ObjectKey& key, ObjectPointer last_state) = 0;
  // With this all changes up to `resource_version` have been told.
  virtual void reached(const std::string& resource_version) = 0;
};

struct ReflectorOptions {
  std::string namespace_;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  // Removes fields that are not read from each object, before it is kept: less memory. Must leave metadata's name,
  // namespace, uid and resourceVersion.
  std::function<void(Json&)> trim;
  bool stream_initial_list = true;      // false: never ask for the collection as a watch
  std::chrono::seconds min_watch{300};  // a watch lasts uniform [min_watch, 2 * min_watch)
  std::chrono::milliseconds short_watch{1000};
  std::chrono::milliseconds steady_watch{10'000};  // a connection that lasted so long is worth an immediate try
  BackoffOptions backoff;
};

// The next request of a reflector.
struct ReflectorStep {
  enum class Kind { kList, kWatch, kPause } kind = Kind::kPause;
  ListOptions list;                    // kList: one page of it; answer with on_page()
  WatchOptions watch;                  // kWatch: answer with on_event() for each event, then on_watch_end()
  std::chrono::milliseconds pause{0};  // kPause: let it pass, then call next()
};

// Thread safety: none. All calls of the target come from within on_page() and on_event().
class Reflector {
 public:
  // REQUIRES: clock and target outlive the reflector.
  Reflector(const Clock& clock, UniformRandom random, Resource resource, ReflectorOptions options,
            ReflectorTarget& target);

  const Resource& resource() const { return resource_; }

  // The version up to which the target shows the collection; empty before the first list.
  const std::string& resource_version() const { return resource_version_; }

  // REQUIRES: the step before was answered.
  ReflectorStep next();

  void on_page(Result<ObjectList> page);

  // metadata.managedFields is dropped from every object: it is a large part of the bytes, and nothing reads it here.
  // An error says that the watch is of no use and must be ended with this error.
  Result<void> on_event(WatchEvent&& event);

  // What Client::watch returned.
  void on_watch_end(const Result<void>& end);

  // Lists again, whatever step was under way: it needs no answer.
  void start_over();

 private:
  enum class Next { kInitialWatch, kList, kWatch };

  WatchOptions watch_options();
  Result<void> on_initial_event(WatchEvent&& event);
  void on_initial_watch_end(const Result<void>& end);
  void on_failed_watch(const Error& error, bool had_events);
  void on_lost_watch(ErrorCode code, bool had_events);
  void finish_list(std::string resource_version);
  ObjectPointer slim(Json&& object) const;
  Result<void> on_older_event(const WatchEvent& event);
  void list_again();
  void list_in_pages();
  void pause();

  const Clock& clock_;
  UniformRandom random_;
  const Resource resource_;
  const ReflectorOptions options_;
  ReflectorTarget& target_;
  Backoff backoff_;

  Next next_;
  std::optional<std::chrono::milliseconds> pause_;  // before next_
  std::string resource_version_;
  bool server_streams_lists_;

  std::string continuation_;  // of a list that is not complete
  bool in_initial_phase_ = false;

  // Of the current watch.
  Clock::TimePoint watch_began_;
  bool watch_had_events_ = false;

  // In a row.
  int internal_errors_ = 0;  // watches that failed so, since the last event or list
  int failures_ = 0;         // short watches that failed without an event, since the last event or list
  int expirations_ = 0;      // since the last event
  int older_bookmarks_ = 0;  // since the last event that was not older
  int older_lists_ = 0;      // refused
};

// Blocks until `stop`.
void run_reflector(Reflector& reflector, const Client& client, const Clock& clock, std::stop_token stop);

}  // namespace sluice::kube
