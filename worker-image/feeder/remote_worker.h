// One connection to one worker: sends requests, puts the chunks of the answers into the arena.
//
// A batch's slot is taken when its first chunk arrives, not when it is asked for. A batch that is still being computed
// occupies no memory here. While no slot is free, the stream is not read; HTTP/2 flow control does the rest. Pixels are
// expanded to the final tensor straight from gRPC's read buffers.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "src/transport/remote_client.h"
#include "worker-image/feeder/remote_executors.h"

namespace sluice::feeder {

// Thread safety: all methods may be called from any thread. The destructor waits for the last event of the stream, and
// must not run within one, nor under the feeder's lock.
class RemoteWorker final : public transport::RemoteClientHandler {
 public:
  // `executor` becomes known to `events` (executor_joined) when the worker says hello; then `events` outlives this.
  RemoteWorker(ExecutorId executor, std::string address, const transport::RemoteClient::Connect& connect,
               std::shared_ptr<transport::Arena> arena, ExecutorEvents& events);
  ~RemoteWorker() override;

  // Begins to connect; events may come from here on.
  void start() { client_->start(); }

  void load(const executor::PipelineHandle& pipeline);
  void execute(RequestId id, const executor::RequestHandle& request);
  // Returns what the batch occupied, as RemoteExecutors::cancel.
  transport::ArenaSlot cancel(RequestId id);

  // True once the last event has been passed on, or the worker speaks another version of the protocol: it is of no more
  // use.
  bool is_over() const;
  // True once the worker has said hello on this connection, even if it is closed by now.
  bool has_joined() const;

  void received(v1::Header header, transport::Payload payload, transport::ReadPermit permit) override;
  void closed(const std::string& reason) override;

 private:
  struct Assembly {
    executor::RequestHandle request;
    transport::ArenaSlot slot;
    std::vector<transport::TensorDescription> tensors;
    std::string structure;
    std::size_t done = 0;      // native: samples; python: bytes
    pipeline::Cost finishing;  // native: what its tensors have cost here
    bool cancelled = false;
  };
  struct Arrival {
    transport::ReadPermit permit;  // first, so dropped last: while the slot is freed no further chunk may wait for one
    RequestId id = 0;
    Assembly assembly;
    v1::Header header;
    transport::Payload payload;
  };

  void received_chunk(v1::Header header, transport::Payload payload, transport::ReadPermit permit);
  void received_hello(const v1::Hello& hello);
  void received_failure(const v1::Failure& failure, const transport::Payload& payload);
  // Both REQUIRE the lock. The worker need not keep what the feeder has dropped: pipelines, states, passes.
  void send_state(const executor::StateHandle& state);
  void send_forget();
  void allocate_then_place(const std::shared_ptr<Arrival>& arrival, std::size_t bytes);
  void place(Arrival arrival);
  void answer(RequestId id, BatchOutcome outcome);

  static executor::Batch finished_batch(Assembly assembly, const v1::Chunk& last);
  // Both return the fault of the chunk.
  static Result<std::size_t> begin(Assembly& assembly, const v1::Chunk& chunk);
  static Result<void> copy_in(Assembly& assembly, const v1::Chunk& chunk, const transport::Payload& payload);
  static Result<void> copy_in_native(Assembly& assembly, const v1::Chunk& chunk, const transport::Payload& payload);

  const ExecutorId executor_;
  const std::string address_;
  const std::shared_ptr<transport::Arena> arena_;
  ExecutorEvents& events_;

  mutable std::mutex mutex_;
  bool joined_ = false;
  bool refused_ = false;
  bool closed_ = false;  // nothing is sent any more
  bool over_ = false;
  std::map<PipelineNumber, std::weak_ptr<const executor::Pipeline>> pipelines_sent_;
  std::map<std::uint64_t, std::weak_ptr<const executor::PipelineState>> states_sent_;
  std::map<std::uint64_t, std::weak_ptr<const executor::VirtualWorkers>> passes_sent_;
  std::map<RequestId, Assembly> assemblies_;
  // Shared with callbacks of the arena, which may outlive this object: null once it is being destroyed.
  struct Self {
    std::mutex mutex;
    RemoteWorker* worker = nullptr;
  };
  const std::shared_ptr<Self> self_;
  std::unique_ptr<transport::RemoteClient> client_;  // last: its destruction ends the events
};

}  // namespace sluice::feeder
