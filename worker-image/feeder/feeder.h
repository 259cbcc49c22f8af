// The feeder: clients on one side, executors on the other, Dispatch between them.
//
// A request's way: client frame -> check -> Dispatch -> an executor -> finished() -> a slot lent to the client ->
// `release`. Nothing here is persistent: a client that loses its feeder asks the next one again.
// Thread safety: all public methods may be called from any thread. One lock guards everything. Under it nothing blocks,
// no executor runs and no slot is freed: freeing one may run the callback of a waiter for memory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/base/clock.h"
#include "worker-image/feeder/client_session.h"
#include "worker-image/feeder/dispatch.h"
#include "worker-image/feeder/feeder_metrics.h"
#include "worker-image/feeder/local_executor.h"
#include "worker-image/feeder/remote_executors.h"
#include "worker-image/feeder/socket_server.h"

namespace sluice::feeder {

class Feeder final : public SocketHandler, public ExecutorEvents {
 public:
  struct Options {
    LocalExecutor::Options local;
    std::string session;              // told to clients: tells one life of the feeder from the next
    bool threads_by_loaders = false;  // for each client no more threads than the largest num_workers of its loaders
    std::size_t ranks = 1;  // that share it, each as if it had a feeder of its own; 1: one client, or a sidecar
    std::shared_ptr<const pipeline::FileReader> files;  // what native pipelines read through; null: the file system
  };

  Feeder(Options options, const Clock& clock, executor::ExecutorMetrics& executor_metrics, FeederMetrics& metrics);
  ~Feeder() override;

  // REQUIRES: before the first client; `remote` outlives every client.
  void set_remote(RemoteExecutors& remote) { remote_ = &remote; }

  // Batches become late by time alone: how often we look. The price of a look is a few microseconds.
  static constexpr std::chrono::milliseconds kLookInterval{50};

  // Follows a changed CPU quota, refreshes gauges, sweeps the arena's waiters. Call it every second.
  void tick(std::size_t local_threads);

  // How many have said hello and are here.
  std::size_t clients();

  void connected(std::shared_ptr<Connection> connection) override;
  void received(std::uint64_t client, transport::Frame frame) override;
  void broken(std::uint64_t client, const Error& error) override;
  void disconnected(std::uint64_t client) override;

  void executor_joined(ExecutorId executor, const std::string& address, std::size_t threads, std::size_t credits,
                       std::size_t waiting_max) override;
  void executor_refused(const std::string& address, std::uint32_t protocol) override;
  void executor_draining(ExecutorId executor) override;
  void executor_lost(ExecutorId executor, const std::string& reason) override;
  void pipeline_ready(ExecutorId executor, PipelineNumber pipeline) override;
  void pipeline_refused(ExecutorId executor, PipelineNumber pipeline, const std::string& reason) override;
  void finished(ExecutorId executor, RequestId request, BatchOutcome outcome) override;

 private:
  struct ActiveRequest {
    ClientId client = 0;
    std::uint64_t stream = 0;  // the client's number
    executor::RequestHandle request;
    CancelFlag cancelled;
    std::shared_ptr<pipeline::ReadAhead> ahead;  // what is being read for it, if it will be made here
  };
  struct KnownPipeline {
    PipelineNumber number = 0;
    std::weak_ptr<const executor::Pipeline> pipeline;
  };
  // Holds the lock; when it gives it up, it frees what is in `freed_`.
  class Locked {
   public:
    explicit Locked(Feeder& feeder);
    ~Locked();
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

   private:
    Feeder& feeder_;
  };

  // One for each message; they return the error that the client is told. REQUIRES: the lock is held.
  Result<void> handle(ClientSession& client, const transport::HelloMessage& message);
  Result<void> handle(ClientSession& client, const transport::OpenMessage& message, std::string state);
  Result<void> handle(ClientSession& client, transport::RequestMessage message, std::string history);
  Result<void> handle(ClientSession& client, const transport::ReleaseMessage& message);
  Result<void> handle(ClientSession& client, const transport::ProgressMessage& message);
  Result<void> handle(ClientSession& client, const transport::CloseMessage& message);
  static Result<void> handle(ClientSession& client, const transport::ForgetMessage& message);
  // Ends the Python processes of a stream that was closed, unless another one uses the pipeline, and tells its client.
  void end_executors(const std::shared_ptr<Connection>& connection, std::uint64_t number,
                     const ClientSession::Stream& stream);
  void note_pace(ClientSession& client, ClientSession::Stream& stream, const transport::ProgressMessage& now);

  // Tells the files' reader, if it takes orders; one that comes while many wait is left out.
  void announce(const executor::PipelineHandle& pipeline, const EpochOrder& order);

  // Hashing and parsing a specification take long: a thread of its own does it, without the lock. The client is paused
  // meanwhile, so that its messages take effect in their order; all others are served.
  Result<void> handle(ClientSession& client, transport::PipelineMessage message);
  void keep_pipeline(ClientId client, const transport::PipelineMessage& message,
                     const Result<executor::PipelineHandle>& pipeline);
  Result<executor::PipelineHandle> shared_pipeline(ClientId client, const transport::PipelineMessage& message,
                                                   transport::UniqueFd memory);

  // As many as the quota and, where they bound it, the clients' loaders allow. REQUIRES: the lock is held.
  std::size_t threads_wanted() const;
  std::size_t threads_wanted(const ClientSession& client) const;  // 0: it has no loader yet
  std::size_t greeted_clients() const;
  void follow_threads();

  void watch_lateness(const std::stop_token& stop);
  // A request's wait for its pipeline to be loaded begins or ends.
  void load_changed(PipelineNumber pipeline, bool is_loaded);
  // The pipeline's batches wait for another share of their time than before.
  void waits_changed(const executor::Pipeline& pipeline);
  void follow_waits(const executor::Pipeline& pipeline);  // REQUIRES: the lock is held
  void set_local_capacity();
  void pump();
  void start(const Assignment& assignment);
  void cancel(const std::vector<Assignment>& attempts, const std::function<bool(const ActiveRequest&)>& which);
  void finished_batch(ExecutorId executor, RequestId id, executor::Batch& batch);
  void finished_failure(ExecutorId executor, RequestId id, const executor::BatchFailure& failure);
  // The request has its answer. Those who still work on it are told.
  void end(RequestId id, const std::vector<ExecutorId>& overtaken);
  void deliver(ClientSession& client, const ActiveRequest& active, executor::Batch batch, std::string_view placement);
  void fail(ClientSession& client, const ActiveRequest& active, const executor::BatchFailure& failure);
  void note_batch_bytes(ClientSession& client, std::size_t bytes);
  void send_windows();
  // For log lines. A worker that drains when we come never said hello: it must not appear among those that did.
  std::string address_of(ExecutorId executor) const;

  const Options options_;
  const Clock& clock_;
  FeederMetrics& metrics_;
  RemoteExecutors* remote_ = nullptr;

  std::mutex mutex_;
  bool ending_ = false;
  std::vector<transport::ArenaSlot> freed_;  // as soon as the lock is given up
  std::uint32_t refused_protocol_ = 0;       // of workers, as logged last
  Dispatch dispatch_;
  std::map<ClientId, ClientSession> clients_;
  std::map<RequestId, ActiveRequest> active_;
  std::map<std::string, KnownPipeline> pipelines_;  // by what makes them equal
  std::map<ExecutorId, std::string> workers_;       // remote ones that said hello: their addresses
  std::size_t quota_threads_;
  std::size_t largest_batch_bytes_ = 0;
  RequestId next_request_ = 1;
  PipelineNumber next_pipeline_ = 1;
  std::uint64_t next_state_ = 1;
  std::uint64_t next_pass_ = 1;  // of virtual workers

  // After what their threads use.
  std::unique_ptr<LocalExecutor> local_;
  executor::ThreadPool pipeline_reader_;  // one thread: a pipeline of several clients is then parsed once
  executor::ThreadPool ender_;            // one thread, which waits for processes to end
  executor::ThreadPool announcer_;        // one thread, as it takes its time to tell the node's cache
  std::jthread lateness_;
};

}  // namespace sluice::feeder
