// One call of Dispatch::assign(): rules 1 to 4 of dispatch.h.
//
// All executors' threads are laid out in time, with what they hold and are expected to do. Then the unanswered requests
// are gone through, oldest first, as if each started now where it is expected to finish first. A request that meets a
// free credit there really starts. Any other only takes its place in the layout, so that a younger request sees how
// long the faster executors will be busy.
#pragma once

#include "worker-image/feeder/dispatch.h"
#include "worker-image/feeder/places.h"

namespace sluice::feeder {

class Assigner {
 public:
  using TimePoint = Dispatch::TimePoint;

  Assigner(Dispatch& dispatch, TimePoint now);
  std::vector<Assignment> run();

 private:
  struct Lane {
    Dispatch::Executor* executor = nullptr;
    Places threads;
    std::vector<TimePoint> finishes;          // of its attempts
    std::map<PipelineNumber, Places> places;  // rule 14
  };
  using Lanes = std::map<ExecutorId, Lane>;
  struct Queue {
    Dispatch::Client* client = nullptr;
    std::vector<RequestId> requests;  // unanswered, oldest first
    std::size_t next = 0;
    std::size_t fill = 0;
    std::set<StreamId> streams;                                    // whose head has been seen
    std::set<std::pair<StreamId, std::uint32_t>> virtual_workers;  // that have an older request
  };
  struct Expected {
    double seconds = 0;       // on `threads` threads at once
    std::size_t threads = 1;  // rule 13
    double late_factor = kUnknownLateFactor;
    bool measured = false;  // on this executor or another one
  };
  struct Choice {
    Lanes::iterator lane;
    Expected expected;
    TimePoint finish{};
  };

  void mark_started(Dispatch::Executor& executor) const;
  void lay_out(ExecutorId id, Dispatch::Executor& executor);
  Queue* emptiest_queue();
  // False if no executor may run it.
  bool place(RequestId id, Dispatch::Request& request);
  void hedge(RequestId id, Dispatch::Request& request, bool is_head);
  // Rule 3, for all executors and for one.
  void probe();
  void probe(Lanes::iterator lane);
  void start(RequestId id, Dispatch::Request& request, const Choice& choice, AttemptKind kind);

  // Rule 10. REQUIRES: the request is of a virtual worker.
  bool place_at_home(RequestId id, Dispatch::Request& request);
  Lanes::iterator home(const Dispatch::Request& request);
  // Where the next virtual worker would have the largest share of a thread.
  Lanes::iterator new_home(const Dispatch::Request& request);
  // The executor that is expected to finish it first; only of those that can start it if told so.
  std::optional<Choice> first_to_finish(const Dispatch::Request& request, bool free_only);
  // Where the pipeline's requests run: the threads, or its own places (rule 14). The first: before those that are free
  // are there.
  Places& unfilled_places(Lane& lane, PipelineNumber pipeline) const;
  Places& places(Lane& lane, PipelineNumber pipeline) const;
  // The request on this lane, which may be busy.
  Choice choice_of(Lanes::iterator lane, const Dispatch::Request& request);
  // The local executor, if it has a free credit and may run it.
  std::optional<Choice> local(const Dispatch::Request& request);
  bool may_run(Lanes::const_iterator lane, const Dispatch::Request& request) const;
  // An older request of the same virtual worker is not answered yet.
  static bool must_wait(Queue& queue, const Dispatch::Request& request);
  // The executor takes new requests of this pipeline and is none that failed it.
  static bool can_run(Lanes::const_iterator lane, PipelineNumber pipeline);
  // Rule 11.
  bool has_its_share(const Dispatch::Client& client, PipelineNumber pipeline) const;
  bool is_measured(const Dispatch::Executor& executor, PipelineNumber pipeline) const;
  Expected expected(Lanes::const_iterator lane, const Dispatch::Request& request);
  // Seconds for a sample on the fastest executor; 0: no executor was ever measured.
  double fastest_sample_seconds(PipelineNumber pipeline);
  // When the training loop gets there.
  TimePoint due(const Dispatch::Request& request) const;

  Dispatch& dispatch_;
  const TimePoint now_;
  Lanes lanes_;
  std::map<ClientId, Queue> queues_;
  std::map<PipelineNumber, double> fastest_;
  std::map<ExecutorId, std::size_t> residents_;  // portable virtual workers that have their home there
  std::size_t free_executors_ = 0;               // that have free credits
  std::vector<Assignment> started_;
};

}  // namespace sluice::feeder
