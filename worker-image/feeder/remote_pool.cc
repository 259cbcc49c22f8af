#include "worker-image/feeder/remote_pool.h"

#include <algorithm>

#include "src/base/logging.h"

namespace sluice::feeder {

RemotePool::RemotePool(std::function<Addresses()> addresses, transport::RemoteClient::Connect connect,
                       std::shared_ptr<transport::Arena> arena, ExecutorEvents& events, const Clock& clock)
    : addresses_(std::move(addresses)),
      connect_(std::move(connect)),
      arena_(std::move(arena)),
      events_(events),
      clock_(clock),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

RemotePool::~RemotePool() {
  thread_.request_stop();
  thread_.join();
  {
    std::lock_guard lock(mutex_);
    by_executor_.clear();
  }
  members_.clear();  // waits for the last event of every stream
}

void RemotePool::run(const std::stop_token& stop) {
  do {
    pass(addresses_());
  } while (clock_.sleep_for(kPassInterval, stop));
}

void RemotePool::pass(const Addresses& listed) {
  for (auto& [address, member] : members_) review(member);
  std::erase_if(members_,
                [&](const auto& entry) { return entry.second.worker == nullptr && !listed.contains(entry.first); });
  for (const std::string& address : listed) {
    if (members_.size() >= kWorkersMax && !members_.contains(address)) continue;
    Member& member = members_[address];
    if (member.worker == nullptr && clock_.now() >= member.retry_at) connect(address, member);
  }
}

void RemotePool::review(Member& member) {
  if (member.worker == nullptr || !member.worker->is_over()) return;
  // A worker that answered and went away is probably restarting; one that never answered may not be there.
  member.backoff = member.worker->has_joined() ? kRetryMin : std::min<Clock::Duration>(2 * member.backoff, kRetryMax);
  member.retry_at = clock_.now() + member.backoff;
  {
    std::lock_guard lock(mutex_);
    by_executor_.erase(member.executor);
  }
  member.worker.reset();
}

void RemotePool::connect(const std::string& address, Member& member) {
  member.executor = next_executor_++;
  member.worker = std::make_unique<RemoteWorker>(member.executor, address, connect_, arena_, events_);
  {
    std::lock_guard lock(mutex_);
    by_executor_.emplace(member.executor, member.worker.get());
  }
  log_debug("feeder", "connecting to a worker", {{"address", address}});
  member.worker->start();
}

RemoteWorker* RemotePool::find_locked(ExecutorId executor) {
  const auto worker = by_executor_.find(executor);
  return worker == by_executor_.end() ? nullptr : worker->second;
}

void RemotePool::load(ExecutorId executor, executor::PipelineHandle pipeline) {
  std::lock_guard lock(mutex_);
  if (RemoteWorker* worker = find_locked(executor)) worker->load(pipeline);
}

void RemotePool::execute(ExecutorId executor, RequestId id, executor::RequestHandle request) {
  std::lock_guard lock(mutex_);
  if (RemoteWorker* worker = find_locked(executor)) worker->execute(id, request);
}

transport::ArenaSlot RemotePool::cancel(ExecutorId executor, RequestId id) {
  std::lock_guard lock(mutex_);
  RemoteWorker* worker = find_locked(executor);
  return worker == nullptr ? transport::ArenaSlot() : worker->cancel(id);
}

}  // namespace sluice::feeder
