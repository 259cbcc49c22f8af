// Keeps a target up to date with a collection of the API server: list, then watch, for ever.
//
// Rules (client-go, tools/cache/reflector.go):
//  - The first list asks the server's cache (resourceVersion 0), a later one for at least what we have seen; after
//    Gone, once, for the most recent.
//  - The resourceVersion to watch from is the list's, then every event's, bookmarks included. It is opaque text.
//  - A watch lasts uniform [300, 600) s, so that not all clients come back at the same time.
//  - Server away or overloaded (refused, 429, 5xx): wait, watch again; listing would make it worse. Only after five
//    internal errors in a row: list.
//  - Gone: list at once.
//  - A watch that ends within one second without an event: wait, list (some servers drop a stale watch without saying
//    Gone). So too after an event that cannot be read.
//  - A clean end, or a connection lost after events: watch again at once.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/kube/backoff.h"
#include "src/kube/client.h"
#include "src/kube/resource.h"

namespace sluice::kube {

// What a reflector keeps up to date. All calls come from the thread in Reflector::run.
class ReflectorTarget {
 public:
  virtual ~ReflectorTarget() = default;
  // The whole collection: whatever is not in `objects` is gone.
  virtual void replace(std::vector<ObjectPointer> objects) = 0;
  virtual void upsert(ObjectPointer object) = 0;
  virtual void remove(const ObjectKey& key, ObjectPointer last_state) = 0;
};

struct ReflectorOptions {
  std::string namespace_;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector;
  std::chrono::seconds min_watch{300};  // a watch lasts uniform [min_watch, 2 * min_watch)
  std::chrono::milliseconds short_watch{1000};
  BackoffOptions backoff;
};

// Thread safety: run() is called once; the rest belongs to its thread.
class Reflector {
 public:
  // REQUIRES: client, clock and target outlive the reflector.
  Reflector(const Client& client, const Clock& clock, UniformRandom random, Resource resource, ReflectorOptions options,
            ReflectorTarget& target);

  // Blocks until `stop`. metadata.managedFields is dropped from every object: it is a large part of the bytes, and
  // nothing here reads it.
  void run(std::stop_token stop);

 private:
  enum class Next { kWatch, kList };

  Result<void> list(std::stop_token stop);
  Next watch(std::stop_token stop);
  Next after_failed_watch(const Error& error, bool had_events, std::stop_token stop);
  void pause(std::stop_token stop);
  void apply(WatchEvent&& event);

  const Client& client_;
  const Clock& clock_;
  UniformRandom random_;
  Resource resource_;
  ReflectorOptions options_;
  ReflectorTarget& target_;
  Backoff backoff_;
  std::string resource_version_ = "0";
  int internal_errors_ = 0;  // watches that failed so, since the last event or list
};

}  // namespace sluice::kube
