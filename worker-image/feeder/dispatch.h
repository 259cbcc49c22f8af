// Who executes which batch, and who gets the answer: the feeder's core, a state machine without I/O, clock or threads.
//
// Glossary
//   request   one batch that one client wants; its id grows with time, so "older" means smaller.
//   executor  something that can run requests: the feeder's own threads (local) or one remote worker.
//   credits   how many requests an executor may hold at once.
//   attempt   one executor holding one request.
// Rules
//   1. A client's oldest assignable request goes first; among clients, the emptiest (fewest batches assigned or waiting
//      in its hands) goes first.
//   2. It goes to the executor with the smallest load (attempts / threads) that has a free credit; local wins a tie.
//   3. The first answer wins. Later ones are duplicates: dropped and counted.
//   4. A lost executor's requests are pending again, in their old places. A draining one gets nothing new.
//   5. An executor that fails a request it should have been able to run loses that request to the local executor,
//      whose word is final: it sees the data as the trainer does. If the local executor succeeds, the pipeline is not
//      given to the failing executor again.
//   6. A remote executor gets requests of a pipeline only once it said that it is ready for it: what it still has to
//      load would hold up the oldest batch, and with it the trainer.
//   7. A cancelled request that an executor holds keeps its credit until the executor answers.
//
// Invariants (checked by the property test)
//   - no executor ever holds more than its credits (unless they shrank), none beyond rule 5 runs a pipeline it failed
//   - every request that was submitted and not cancelled is answered exactly once, if executors keep answering
// Thread safety: none; the feeder calls it under its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace sluice::feeder {

using ClientId = std::uint64_t;
using ExecutorId = std::uint64_t;
using RequestId = std::uint64_t;
using PipelineNumber = std::uint64_t;
using StreamId = std::uint64_t;  // the client's number; unique only together with the client

inline constexpr ExecutorId kLocalExecutor = 0;

struct Assignment {
  RequestId request = 0;
  ExecutorId executor = 0;
};

enum class AnswerKind {
  kFirst,      // hand it to the client
  kDuplicate,  // somebody was faster
  kUnwanted,   // cancelled, or never asked
};

enum class FailureKind {
  kFinal,     // tell the client
  kRetried,   // pending again
  kUnwanted,  // cancelled or already answered
};

class Dispatch {
 public:
  static constexpr std::size_t kPendingPerClientMax = 4096;

  void add_client(ClientId client);
  // Its requests are cancelled; the attempts that executors still hold are returned, to tell them.
  std::vector<Assignment> remove_client(ClientId client);

  // False if the client has kPendingPerClientMax requests already, or is unknown. REQUIRES: request ids ascend.
  bool submit(ClientId client, StreamId stream, PipelineNumber pipeline, RequestId request);
  std::vector<Assignment> cancel_stream(ClientId client, StreamId stream);

  void add_executor(ExecutorId executor, std::size_t threads, std::size_t credits);
  void set_capacity(ExecutorId executor, std::size_t threads, std::size_t credits);
  void drain(ExecutorId executor);
  // Lost or gone. Returns how many requests are pending again because of it.
  std::size_t remove_executor(ExecutorId executor);
  // The executor is ready for this pipeline. The local executor always is.
  void allow(ExecutorId executor, PipelineNumber pipeline);
  // The executor cannot run this pipeline; what it holds of it is pending again. REQUIRES: not the local executor.
  std::size_t exclude(ExecutorId executor, PipelineNumber pipeline);

  // What should start now. Each assignment takes a credit.
  std::vector<Assignment> assign();

  AnswerKind answer(ExecutorId executor, RequestId request);
  // `retry_elsewhere` is false for failures that would repeat everywhere.
  FailureKind fail(ExecutorId executor, RequestId request, bool retry_elsewhere);

  // The client's hands: batches delivered that it still holds.
  void set_held(ClientId client, std::size_t batches);

  // Credits of all executors that take new work.
  std::size_t credits() const;
  std::size_t outstanding() const;  // attempts that executors hold
  std::size_t pending() const;      // requests without executor
  std::size_t held_by(ExecutorId executor) const;

 private:
  struct Request {
    ClientId client = 0;
    StreamId stream = 0;
    PipelineNumber pipeline = 0;
    std::set<ExecutorId> attempts;
    std::optional<ExecutorId> blamed;  // failed it remotely; since then only the local executor may run it
  };
  struct Client {
    std::set<RequestId> pending;
    std::set<RequestId> assigned;
    std::size_t held = 0;
  };
  struct Executor {
    std::size_t threads = 1;
    std::size_t credits = 0;
    bool draining = false;
    std::set<RequestId> attempts;  // including those of requests cancelled or answered meanwhile
    std::set<PipelineNumber> allowed;
    std::set<PipelineNumber> excluded;  // for ever, whatever it says later
  };

  static bool may_run(ExecutorId id, const Executor& executor, const Request& request);
  std::optional<ExecutorId> choose_executor(const Request& request) const;
  std::optional<Assignment> assign_one();
  std::vector<Assignment> cancel(const std::vector<RequestId>& requests);
  bool release_attempt(ExecutorId executor, RequestId request);
  void make_pending(RequestId request);
  void forget(std::map<RequestId, Request>::iterator request);

  std::map<ClientId, Client> clients_;
  std::map<ExecutorId, Executor> executors_;
  std::map<RequestId, Request> requests_;  // neither answered nor cancelled
};

}  // namespace sluice::feeder
