// Events (events.k8s.io/v1): what `kubectl describe` shows a person about an object.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "src/base/clock.h"
#include "src/kube/client.h"
#include "src/kube/resource.h"

namespace sluice::kube {

enum class EventType { kNormal, kWarning };

struct Event {
  Resource resource;  // the object of the event
  ObjectKey key;
  std::string uid;
  EventType type = EventType::kNormal;
  std::string reason;  // short, CamelCase, one per category: "ScaledUp"; required by the API
  std::string action;  // the action, done or tried: "Scale"; required by the API
  std::string note;    // one sentence, at most 1 KiB (the rest is cut)
};

struct EventRecorderOptions {
  std::string controller = "sluice.dev/operator";  // reportingController
  std::string instance;                            // reportingInstance: the pod's name; required by the API
  std::size_t queue_capacity = 1000;
  std::chrono::seconds series_idle = std::chrono::minutes(6);  // a repetition later than this is a new event
};

// The first event of a kind (type, reason, action, object) is created. Repetitions become its series, also with another
// note (a written one cannot be changed). The second is written; later ones are counted, and written with the
// next one that is at least a minute younger. Events are best effort: record() never blocks and drops when the queue is
// full. A failed write is logged and not retried (but for the client's own retries).
//
// Thread safety: all methods may be called from any thread.
class EventRecorder {
 public:
  // REQUIRES: client and clock outlive the recorder.
  EventRecorder(const Client& client, const Clock& clock, EventRecorderOptions options);

  // Stops at once; queued events are lost.
  ~EventRecorder();

  void record(Event event);

  // REQUIRES: called once. Starts the thread that writes.
  void start();

  // Writes the oldest queued event; false when there is none. For callers without threads. REQUIRES: not started.
  bool step(std::stop_token stop = {});

  std::uint64_t dropped() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sluice::kube
