// The executor of each batch, and the receiver of its answer: the feeder's core, a state machine without I/O, clock or
// threads. docs/designs/dispatch.md has the reasons.
//
// Glossary
//   request   one batch that one client wants; its id grows with time, so "older" means smaller.
//   executor  something that can run requests: the feeder's own threads (local) or one remote worker.
//   credits   how many requests an executor may hold at once.
//   attempt   one executor holding one request. A hedge is a second attempt, where the first takes too long; a probe is
//             a second attempt whose only purpose is to measure its executor.
//   head      the oldest request of a stream: the one that its training loop waits for, or will wait for next.
// Rules
//   1. A client's oldest assignable request goes first; among clients, the emptiest (fewest batches assigned or waiting
//      in its hands) goes first.
//   2. It goes to the executor that is expected to finish it first; local wins a tie. While that one has no free
//   credit,
//      the request waits for it, unless another one is expected to finish it before the loop gets there.
//   3. A remote executor of unknown speed gets one probe, if there is more work than the others can take at once.
//   Before
//      any executor was measured, it gets the youngest pending request instead. Both go on when another executor was
//      faster: else the slow would never be known.
//   4. A hedge starts where another executor has a free credit, if the loop gets there before the request is expected,
//      and the request is late (its time has passed by a margin), or is the head and the other executor is expected to
//      need at most half the time that is left. A request has at most two attempts at a time, and a probe. Only heads
//      are hedged with credits that pending requests would take. A head may have a third attempt, by the local
//      executor: both others may have stopped.
//   5. The first answer wins. Later ones are duplicates: dropped and counted.
//   6. A lost executor's requests are pending again, in their old places. A draining one gets nothing new.
//   7. An executor that fails a request it should have been able to run loses that request to the local executor,
//      whose word is final: it sees the data as the trainer does. If the local executor succeeds, the pipeline is not
//      given to the failing executor again.
//   8. A remote executor gets requests of a pipeline only once it said that it is ready for it: what it still has to
//      load would hold up the oldest batch, and with it the trainer.
//   9. A request that was cancelled or answered elsewhere keeps the executor's credit until that executor answers.
//  10. The requests of a virtual worker are run one after the other, in their order, by one executor: its home. That is
//  the
//      local executor. A portable one may have any home: the executor that has the fewest for its threads and speed
//      when it needs one. It moves only where its home is lost, drains or may not run it any more.
//  11. Of a client that has a share, no more requests than that start before one of them is answered.
//  12. A request that waits until its executor has loaded its pipeline takes neither a thread nor a credit. Till it is
//      loaded, the executor gets no other request of that pipeline; and never more of one pipeline than its credits.
//  13. The local executor's threads make the samples of a request together, as many threads as the request can use.
//  14. A pipeline whose batches mostly wait takes no credits. It has places of its own at each executor: as many as it
//      takes to fill the executor's threads, at most those that the pipeline may have, and of all such pipelines
//      together no more than the executor said.
//
// Invariants (checked by the property test and, for every order of events up to a bound, by the model test)
//   - no executor ever holds more than its credits and what waits by rules 12 and 14 (unless they shrank), none beyond
//     rule 7 runs a pipeline it failed
//   - a request has at most two attempts, a third one that is local, and a probe, at different executors
//   - every request that was submitted and not cancelled is answered exactly once, if executors keep answering
// Thread safety: none; the feeder calls it under its lock. A value: copies and equal ones act alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "worker-image/feeder/service_time.h"

namespace sluice::feeder {

using ClientId = std::uint64_t;
using ExecutorId = std::uint64_t;
using RequestId = std::uint64_t;
using PipelineNumber = std::uint64_t;
using StreamId = std::uint64_t;  // the client's number; unique only together with the client

inline constexpr ExecutorId kLocalExecutor = 0;

// One of a stream's makers of batches, each of which goes on from the batch that it made before.
struct VirtualWorker {
  std::uint32_t number = 0;
  bool is_portable = false;  // any executor can take it up at any of its batches, if it makes those before again
  auto operator<=>(const VirtualWorker&) const = default;
};

enum class AttemptKind { kFirst, kHedge, kProbe };

struct Assignment {
  RequestId request = 0;
  ExecutorId executor = 0;
  AttemptKind kind = AttemptKind::kFirst;
};

enum class AnswerKind {
  kFirst,      // hand it to the client
  kDuplicate,  // another executor was faster
  kUnwanted,   // cancelled, or never asked
};

struct Answer {
  AnswerKind kind = AnswerKind::kUnwanted;
  std::vector<ExecutorId> overtaken;  // work on the same request for nothing: to be told. Those that measure go on
};

enum class FailureKind {
  kFinal,     // tell the client
  kRetried,   // pending again
  kUnwanted,  // cancelled, already answered, or another executor is still at it
};

struct FailureAnswer {
  FailureKind kind = FailureKind::kUnwanted;
  std::vector<ExecutorId> overtaken;  // as in Answer; if final
};

class Dispatch {
 public:
  using TimePoint = Clock::TimePoint;

  static constexpr std::size_t kPendingPerClientMax = 4096;

  void add_client(ClientId client);
  // Its requests are cancelled; the attempts that executors still hold are returned, to tell them.
  std::vector<Assignment> remove_client(ClientId client);

  // False if the client has kPendingPerClientMax requests already, or is unknown. REQUIRES: request ids ascend.
  // `virtual_worker`: of the stream; none: its batches may be made in any order. `threads_max`: rule 13.
  bool submit(ClientId client, StreamId stream, PipelineNumber pipeline, RequestId request, std::size_t samples,
              std::optional<VirtualWorker> virtual_worker = std::nullopt, std::size_t threads_max = 1);
  // The training loop had `consumed` batches of the stream at `now`, and computes so long on each.
  void set_pace(ClientId client, StreamId stream, std::uint64_t consumed, double seconds_per_batch, TimePoint now);
  std::vector<Assignment> cancel_stream(ClientId client, StreamId stream);

  // `waiting_max`: rule 14; 0: it does not know of that rule.
  void add_executor(ExecutorId executor, std::size_t threads, std::size_t credits, std::size_t waiting_max = 0);
  void set_capacity(ExecutorId executor, std::size_t threads, std::size_t credits, std::size_t waiting_max = 0);
  void drain(ExecutorId executor);
  // Lost or gone. Returns how many requests are pending again because of it.
  std::size_t remove_executor(ExecutorId executor);
  // Rule 12: so many of the executor's requests wait.
  void set_loading(ExecutorId executor, std::size_t requests);
  // Whether the executor has loaded the pipeline, or need not; so it is until this says otherwise. The time that a
  // request has waited for it says nothing of how long the next ones take.
  void set_loaded(ExecutorId executor, PipelineNumber pipeline, bool is_loaded, TimePoint now);
  // Rule 14: a batch computes for the share `load` of its time, 0 < load <= 1 (wait_share.h), and an executor may hold
  // so many at once, or as many as it has credits. 1: it computes, as it does until this says otherwise.
  // True if it has turned from one to the other.
  bool set_waits(PipelineNumber pipeline, double load, std::size_t requests_max);
  // The executor is ready for this pipeline. The local executor always is.
  void allow(ExecutorId executor, PipelineNumber pipeline);
  // The executor cannot run this pipeline; its requests of it are pending again. REQUIRES: not the local executor.
  std::size_t exclude(ExecutorId executor, PipelineNumber pipeline);
  // No request will name this pipeline any more: what is remembered of it goes.
  void forget_pipeline(PipelineNumber pipeline);

  // What should start now. Each assignment takes a credit. Call it after every event, and every few milliseconds while
  // requests are outstanding: requests become late by time alone. REQUIRES: `now` never goes back.
  std::vector<Assignment> assign(TimePoint now);

  Answer answer(ExecutorId executor, RequestId request, TimePoint now);
  // `retry_elsewhere` is false for failures that would repeat everywhere.
  FailureAnswer fail(ExecutorId executor, RequestId request, bool retry_elsewhere);

  // The client's hands: batches delivered that it still holds.
  void set_held(ClientId client, std::size_t batches);
  // Rule 11. REQUIRES: at least 1.
  void set_share(ClientId client, std::size_t requests);

  // Credits of all executors that take new work, and the places that pipelines have beyond those by rule 14.
  std::size_t credits() const;
  std::size_t outstanding() const;  // attempts that executors hold
  std::size_t pending() const;      // requests without executor
  std::size_t held_by(ExecutorId executor) const;

  auto operator<=>(const Dispatch&) const = default;

 private:
  friend class Assigner;  // rules 1 to 4, over one call of assign()

  struct Request {
    ClientId client = 0;
    StreamId stream = 0;
    PipelineNumber pipeline = 0;
    std::size_t samples = 1;
    std::uint64_t place = 0;        // in its stream: how many batches the loop takes before it
    std::set<ExecutorId> attempts;  // including the probe
    std::optional<ExecutorId> probe;
    std::optional<ExecutorId> blamed;  // failed it remotely; since then only the local executor may run it
    std::optional<VirtualWorker> virtual_worker;
    std::size_t threads_max = 1;
    auto operator<=>(const Request&) const = default;
  };
  struct Stream {
    std::uint64_t submitted = 0;
    std::uint64_t consumed = 0;  // as of `paced_at`
    double seconds_per_batch = 0;
    TimePoint paced_at{};
    std::map<std::uint32_t, ExecutorId> homes;  // of its portable virtual workers
    auto operator<=>(const Stream&) const = default;
  };
  struct Client {
    std::set<RequestId> pending;
    std::set<RequestId> assigned;
    std::map<StreamId, Stream> streams;
    std::size_t held = 0;
    std::size_t share = std::numeric_limits<std::size_t>::max();
    auto operator<=>(const Client&) const = default;
  };
  struct Attempt {
    RequestId request = 0;
    PipelineNumber pipeline = 0;
    std::size_t samples = 1;
    std::size_t threads = 1;                 // that make it together
    bool is_measuring = false;               // goes on when it is overtaken: how long it takes is worth knowing
    std::optional<double> expected_seconds;  // unless no executor was measured yet
    TimePoint late_at = TimePoint::max();
    std::optional<TimePoint> started;  // by a thread, as far as we can tell: an executor's requests run in their order
    bool overtaken = false;            // the request was answered by another executor
    auto operator<=>(const Attempt&) const = default;
  };
  // Rule 14, of a pipeline.
  struct Waits {
    double load = 1;
    std::size_t requests_max = 0;
    auto operator<=>(const Waits&) const = default;
  };
  // What an executor knows and can do of one pipeline.
  struct Skill {
    bool allowed = false;
    bool excluded = false;  // for ever, whatever it says later
    bool is_loaded = true;
    ServiceTime time;
    auto operator<=>(const Skill&) const = default;
  };
  struct Executor {
    std::size_t threads = 1;
    std::size_t credits = 0;
    std::size_t waiting_max = 0;
    bool draining = false;
    std::vector<Attempt> attempts;  // oldest first; including those of requests cancelled or answered meanwhile
    std::map<PipelineNumber, Skill> skills;
    std::size_t loading = 0;  // of the attempts, those that wait
    auto operator<=>(const Executor&) const = default;

    // With those that the waiting attempts do not take.
    std::size_t threads_now() const { return threads + loading; }
    std::size_t credits_now() const { return credits + loading; }
    std::size_t held_of(PipelineNumber pipeline) const;
    // It holds a request that makes it load the pipeline.
    bool is_loading(PipelineNumber pipeline) const;
  };

  // Rule 14: how many requests of the pipeline fill so many threads of the executor, or credits. nullopt: it computes.
  std::optional<std::size_t> places(const Executor& executor, PipelineNumber pipeline, std::size_t threads) const;
  // Of the executor's attempts, those that take credits.
  std::size_t held_credits(const Executor& executor) const;
  bool can_start(const Executor& executor, PipelineNumber pipeline) const;
  // Whether it can start a request of any pipeline.
  bool has_room(const Executor& executor) const;
  std::vector<Assignment> cancel(const std::vector<RequestId>& requests);
  std::optional<Attempt> release_attempt(ExecutorId executor, RequestId request);
  std::vector<ExecutorId> overtake(RequestId request, const Request& answered, ExecutorId winner);
  void observe(ExecutorId executor, const Attempt& attempt, bool finished, TimePoint now);
  // The executor will not answer it. True if the request is pending again.
  bool give_up(ExecutorId executor, RequestId request);
  bool drop_attempt(ExecutorId executor, RequestId id, Request& request);
  void make_pending(RequestId request);
  void forget(std::map<RequestId, Request>::iterator request);

  std::map<ClientId, Client> clients_;
  std::map<ExecutorId, Executor> executors_;
  std::map<PipelineNumber, Waits> waits_;  // of those whose load is less than 1
  std::map<RequestId, Request> requests_;  // neither answered nor cancelled
};

}  // namespace sluice::feeder
