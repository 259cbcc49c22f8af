// All remote workers: connects to the addresses that exist, again after a while to those that refuse, and forgets
// those that are gone. A worker whose address disappears while its stream is open is left alone: it is draining.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "src/base/clock.h"
#include "worker-image/feeder/remote_worker.h"
#include "worker-image/program/discovery.h"

namespace sluice::feeder {

using program::Addresses;

// Thread safety: all methods may be called from any thread.
class RemotePool final : public RemoteExecutors {
 public:
  static constexpr std::chrono::milliseconds kPassInterval{200};
  static constexpr std::chrono::seconds kRetryMin{1};
  static constexpr std::chrono::seconds kRetryMax{8};
  static constexpr std::size_t kWorkersMax = 4096;

  // `addresses` is asked at every pass; `events` must outlive the pool.
  RemotePool(std::function<Addresses()> addresses, transport::RemoteClient::Connect connect,
             std::shared_ptr<transport::Arena> arena, ExecutorEvents& events, const Clock& clock);
  ~RemotePool() override;

  void load(ExecutorId executor, executor::PipelineHandle pipeline) override;
  void execute(ExecutorId executor, RequestId id, executor::RequestHandle request) override;
  transport::ArenaSlot cancel(ExecutorId executor, RequestId id) override;

 private:
  struct Member {
    ExecutorId executor = 0;
    std::unique_ptr<RemoteWorker> worker;  // null between attempts
    Clock::TimePoint retry_at{};
    Clock::Duration backoff = kRetryMin;
  };

  void run(const std::stop_token& stop);
  void pass(const Addresses& listed);
  void review(Member& member);
  void connect(const std::string& address, Member& member);
  RemoteWorker* find_locked(ExecutorId executor);

  const std::function<Addresses()> addresses_;
  const transport::RemoteClient::Connect connect_;
  const std::shared_ptr<transport::Arena> arena_;
  ExecutorEvents& events_;
  const Clock& clock_;
  std::map<std::string, Member> members_;  // the thread's own; by address
  ExecutorId next_executor_ = kLocalExecutor + 1;

  // Held while a worker is used, too: so the pool's own thread destroys it, and never an event of its stream, for the
  // end of which the destructor waits.
  std::mutex mutex_;
  std::map<ExecutorId, RemoteWorker*> by_executor_;
  std::jthread thread_;
};

}  // namespace sluice::feeder
