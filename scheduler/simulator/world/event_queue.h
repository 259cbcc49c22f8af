// Events in the order of their time, and of their insertion where times are equal.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace sluice::simulator {

enum class EventKind {
  kArrival,
  kMilestone,
  kWorkers,
  kNodeDown,
  kNodeUp,
  kIncident,
  kIncidentEnd,
  kAdmission,
  kDecision
};

struct Event {
  double at_seconds = 0;
  EventKind kind = EventKind::kDecision;
  int object = 0;             // job, node or incident
  std::uint64_t version = 0;  // of a milestone: of the rates it was predicted from; of a node event: how many before it
};

class EventQueue {
 public:
  void push(const Event& event) { heap_.push({event, pushed_++}); }
  bool empty() const { return heap_.empty(); }
  const Event& top() const { return heap_.top().event; }  // REQUIRES: !empty()
  Event pop() {
    Event event = heap_.top().event;
    heap_.pop();
    return event;
  }

 private:
  struct Entry {
    Event event;
    std::uint64_t number = 0;
    bool operator<(const Entry& other) const {  // std::priority_queue gives the greatest first
      if (event.at_seconds != other.event.at_seconds) return event.at_seconds > other.event.at_seconds;
      return number > other.number;
    }
  };
  std::priority_queue<Entry> heap_;
  std::uint64_t pushed_ = 0;
};

}  // namespace sluice::simulator
