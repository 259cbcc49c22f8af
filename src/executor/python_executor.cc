#include "src/executor/python_executor.h"

#include <algorithm>

#include "src/base/logging.h"
#include "src/executor/thread_pool.h"

namespace sluice::executor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLoadFailureMemory{10};
constexpr int kAttempts = 2;
constexpr std::chrono::seconds kChildrenEndTimeMax{5};  // torch's loader waits so long for its workers
constexpr std::chrono::milliseconds kPassPoll{1};
constexpr std::chrono::seconds kMeasureInterval{10};  // of children's memory: a look at one takes milliseconds

// A child has no less, whatever was seen of it: the next batch may be larger.
constexpr std::size_t kChildBytesMin = std::size_t{64} << 20;

// As python/sluice/executor/history.py has a batch: how many keys, and the keys.
void append_to(std::string& made, const std::vector<std::int64_t>& keys) {
  const auto append = [&](std::int64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      made.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> shift & 0xff));
  };
  append(static_cast<std::int64_t>(keys.size()));
  for (const std::int64_t key : keys) append(key);
}

}  // namespace

std::size_t children_fitting(std::size_t children, std::size_t threads, std::optional<std::size_t> available_bytes,
                             std::optional<std::size_t> child_bytes) {
  if (!available_bytes) return threads + ThreadPool::kJobsBesideMax;
  const std::size_t fitting = *available_bytes / 2 / std::max(child_bytes.value_or(0), kChildBytesMin);
  return std::max(threads, children + fitting);
}

PythonExecutor::PythonExecutor(PythonOptions options, std::size_t children_max, LoadObserver observer)
    : options_(std::move(options)), children_max_(children_max), observer_(std::move(observer)), zygotes_(options_) {}

PythonExecutor::~PythonExecutor() = default;

PythonExecutor::Running::Running(PythonExecutor& executor, const Pipeline& pipeline) : executor_(executor) {
  std::lock_guard lock(executor_.mutex_);
  place_ = executor_.running_.insert(&pipeline);
  executor_.most_running_ = std::max(executor_.most_running_, executor_.running_.size());
}

PythonExecutor::Running::~Running() {
  {
    std::lock_guard lock(executor_.mutex_);
    executor_.running_.erase(place_);
  }
  executor_.returned_.notify_all();
}

std::size_t PythonExecutor::idle_children() const {
  std::lock_guard lock(mutex_);
  return idle_.size();
}

std::variant<std::unique_ptr<PythonChild>, BatchFailure> PythonExecutor::take_child(const PipelineHandle& pipeline,
                                                                                    std::optional<std::uint64_t> pass,
                                                                                    const std::stop_token& stop) {
  std::list<IdleChild> ended;  // declared before the lock: their processes end outside of it
  {
    std::lock_guard lock(mutex_);
    const auto is_of_another_pass = [&](const IdleChild& idle) {
      return pass && idle.child->is_of_another_pass(*pass);
    };
    const auto is_left = [&](const IdleChild& idle) {  // by its pass; two passes may go on at once
      return idle.child->runs(*pipeline) && is_of_another_pass(idle) &&
             Clock::now() - idle.since >= options_.orphan_time_max;
    };
    // A batch must not pay for children that died before it came: two of those would look like its own doing.
    for (auto idle = idle_.begin(); idle != idle_.end();) {
      const auto next = std::next(idle);
      if (idle->child->has_ended() || is_left(*idle)) ended.splice(ended.end(), idle_, idle);
      idle = next;
    }
    const auto known = std::find_if(idle_.begin(), idle_.end(), [&](const auto& idle) {
      return idle.child->runs(*pipeline) && !is_of_another_pass(idle);
    });
    if (known != idle_.end()) {
      auto taken = std::move(known->child);
      idle_.erase(known);
      taken->adopt(pipeline);
      return taken;
    }
  }
  return start_child(pipeline, stop);
}

std::variant<std::unique_ptr<PythonChild>, BatchFailure> PythonExecutor::take_child(const BatchRequest& request,
                                                                                    const std::stop_token& stop) {
  if (request.virtual_workers == nullptr) return take_child(request.pipeline, request.base_seed, stop);
  std::vector<OwnChildren> ended;  // declared before the lock, like `lost`: their processes end outside of it
  std::unique_ptr<PythonChild> own, lost;
  {
    std::lock_guard lock(mutex_);
    ended = extract_ended_passes();
    OwnChildren& children = passes_[request.virtual_workers];
    children.resize(request.virtual_workers->made.size());
    own = std::move(children.at(request.virtual_worker()));
  }
  if (own != nullptr && own->has_ended()) lost = std::move(own);
  if (own != nullptr) return own;
  const std::size_t made_bytes = request.virtual_workers->made.at(request.virtual_worker()).size();
  if (made_bytes > 0)
    log_info("executor", "virtual worker is rebuilt",
             {{"worker", request.virtual_worker()}, {"history_bytes", made_bytes}});
  return start_child(request.pipeline, stop);
}

std::vector<PythonExecutor::OwnChildren> PythonExecutor::extract_ended_passes() {
  std::vector<OwnChildren> ended;
  for (auto pass = passes_.begin(); pass != passes_.end();) {
    const auto next = std::next(pass);
    if (pass->first.expired()) ended.push_back(std::move(passes_.extract(pass).mapped()));
    pass = next;
  }
  return ended;
}

std::variant<std::unique_ptr<PythonChild>, BatchFailure> PythonExecutor::start_child(const PipelineHandle& pipeline,
                                                                                     const std::stop_token& stop) {
  {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    std::erase_if(load_failures_, [&](const auto& entry) { return entry.second.until < now; });
    if (const auto known = load_failures_.find(pipeline->fingerprint); known != load_failures_.end()) {
      return known->second.failure;
    }
  }
  tell(*pipeline, LoadWait::kBegins);
  auto started = zygotes_.start_child(pipeline, stop);
  tell(*pipeline, LoadWait::kEnds);
  if (const auto* failure = std::get_if<BatchFailure>(&started)) {
    log_warning("executor", "python pipeline not loaded", {{"reason", failure->failure.message}});
    std::lock_guard lock(mutex_);
    load_failures_.insert_or_assign(pipeline->fingerprint, LoadFailure{*failure, Clock::now() + kLoadFailureMemory});
  }
  return started;
}

void PythonExecutor::tell(const Pipeline& pipeline, LoadWait wait) {
  if (observer_) observer_(pipeline, wait, zygotes_.has_loaded(pipeline));
}

void PythonExecutor::give_back(std::unique_ptr<PythonChild> child) {
  std::unique_ptr<PythonChild> surplus;  // declared before the lock: its process ends outside of it
  std::lock_guard lock(mutex_);
  idle_.push_front({std::move(child), Clock::now()});
  if (idle_.size() <= std::max(children_max_, most_running_)) return;
  surplus = std::move(idle_.back().child);
  idle_.pop_back();
  if (surplus->is_of_another_pass(idle_.front().child->pass())) return;  // it has done its work
  log_info("executor", "more idle Python children than the limit", {{"limit", children_max_}});
}

void PythonExecutor::measure(const PythonChild& child) {
  {
    std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    if (now - measured_at_ < kMeasureInterval) return;
    measured_at_ = now;
  }
  const auto bytes = private_bytes(child.pid());
  std::lock_guard lock(mutex_);
  if (bytes) child_bytes_ = bytes;
}

std::size_t PythonExecutor::children_max(std::size_t threads, std::optional<std::size_t> available_bytes) const {
  std::lock_guard lock(mutex_);
  return children_fitting(idle_.size() + running_.size(), threads, available_bytes, child_bytes_);
}

void PythonExecutor::give_back(const BatchRequest& request, std::unique_ptr<PythonChild> child) {
  if (request.virtual_workers == nullptr) return give_back(std::move(child));
  std::lock_guard lock(mutex_);
  passes_.at(request.virtual_workers).at(request.virtual_worker()) = std::move(child);
}

void PythonExecutor::end_children(const Pipeline& pipeline, const std::weak_ptr<const VirtualWorkers>& pass) {
  std::list<IdleChild> ended;  // declared before the lock: their processes end outside of it
  std::vector<OwnChildren> over;
  const auto deadline = Clock::now() + kChildrenEndTimeMax;
  std::unique_lock lock(mutex_);
  returned_.wait_until(lock, deadline, [&] { return !running_.contains(&pipeline); });
  // The last batch may be on its way to its client still.
  while (!pass.expired() && Clock::now() < deadline) returned_.wait_for(lock, kPassPoll);
  over = extract_ended_passes();
  for (auto idle = idle_.begin(); idle != idle_.end();) {
    const auto next = std::next(idle);
    if (idle->child->runs(pipeline)) ended.splice(ended.end(), idle_, idle);
    idle = next;
  }
}

void PythonExecutor::end_idle_children() {
  zygotes_.end_idle();
  std::list<IdleChild> ended;  // declared before the lock: their processes end outside of it
  std::vector<OwnChildren> over;
  std::lock_guard lock(mutex_);
  over = extract_ended_passes();
  for (auto idle = idle_.begin(); idle != idle_.end();) {
    const auto next = std::next(idle);
    const auto time_max = idle->child->is_orphan() ? options_.orphan_time_max : options_.idle_time_max;
    if (Clock::now() - idle->since >= time_max) ended.splice(ended.end(), idle_, idle);
    idle = next;
  }
}

std::optional<BatchFailure> PythonExecutor::warm(const PipelineHandle& pipeline, const std::stop_token& stop) {
  auto taken = take_child(pipeline, std::nullopt, stop);
  if (auto* failure = std::get_if<BatchFailure>(&taken)) return std::move(*failure);
  give_back(std::get<std::unique_ptr<PythonChild>>(std::move(taken)));
  return std::nullopt;
}

std::variant<Batch, BatchFailure> PythonExecutor::run(const BatchRequest& request, const std::stop_token& stop,
                                                      const std::function<bool()>& cancelled) {
  const Running running(*this, *request.pipeline);
  if (request.virtual_workers == nullptr) return try_twice(request, stop, cancelled);
  std::string& made = request.virtual_workers->made.at(request.virtual_worker());
  if (!request.history.empty()) made = request.history;
  auto outcome = try_twice(request, stop, cancelled);
  // A batch that failed counts, too: the next one comes after it, wherever it is made instead.
  if (!request.virtual_workers->is_portable) append_to(made, request.indices);
  return outcome;
}

std::variant<Batch, BatchFailure> PythonExecutor::try_twice(const BatchRequest& request, const std::stop_token& stop,
                                                            const std::function<bool()>& cancelled) {
  std::string how;
  for (int attempt = 0; attempt < kAttempts && !stop.stop_requested() && !cancelled(); ++attempt) {
    auto taken = take_child(request, stop);
    if (auto* failure = std::get_if<BatchFailure>(&taken)) return std::move(*failure);
    auto child = std::get<std::unique_ptr<PythonChild>>(std::move(taken));
    auto outcome = child->run(request, stop, cancelled);
    if (auto* lost = std::get_if<ChildLost>(&outcome)) {
      how = lost->how;
      log_warning("executor", "python child lost", {{"how", how}, {"attempt", attempt + 1}});
      continue;
    }
    measure(*child);
    give_back(request, std::move(child));
    if (auto* failure = std::get_if<BatchFailure>(&outcome)) return std::move(*failure);
    return std::get<Batch>(std::move(outcome));
  }
  if (stop.stop_requested() || cancelled()) return to_failure(no_longer_wanted());
  BatchFailure failure;
  failure.failure = {"RuntimeError", how + " (twice, with the same batch)", ""};
  return failure;
}

}  // namespace sluice::executor
