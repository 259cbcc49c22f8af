#include "src/executor/python_executor.h"

#include <algorithm>

#include "src/base/logging.h"

namespace sluice::executor {
namespace {

constexpr std::chrono::seconds kLoadFailureMemory{10};
constexpr int kAttempts = 2;

}  // namespace

PythonExecutor::PythonExecutor(PythonOptions options, std::size_t children_max)
    : options_(std::move(options)), children_max_(children_max) {}

PythonExecutor::~PythonExecutor() = default;

std::size_t PythonExecutor::idle_children() const {
  std::lock_guard lock(mutex_);
  return idle_.size();
}

std::variant<std::unique_ptr<PythonChild>, BatchFailure> PythonExecutor::take_child(const PipelineHandle& pipeline,
                                                                                    const std::stop_token& stop) {
  {
    std::lock_guard lock(mutex_);
    // A batch must not pay for children that died before it came: two of those would look like its own doing.
    idle_.remove_if([](const auto& idle) { return idle->has_ended(); });
    const auto child = std::find_if(idle_.begin(), idle_.end(), [&](const auto& idle) {
      return idle->pipeline().fingerprint == pipeline->fingerprint && idle->pipeline().python == pipeline->python;
    });
    if (child != idle_.end()) {
      auto taken = std::move(*child);
      idle_.erase(child);
      return taken;
    }
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(load_failures_, [&](const auto& entry) { return entry.second.until < now; });
    if (const auto known = load_failures_.find(pipeline->fingerprint); known != load_failures_.end()) {
      return known->second.failure;
    }
  }
  auto started = PythonChild::start(options_, spawner_, pipeline, stop);
  if (const auto* failure = std::get_if<BatchFailure>(&started)) {
    log_warning("executor", "python pipeline not loaded", {{"reason", failure->failure.message}});
    std::lock_guard lock(mutex_);
    load_failures_.insert_or_assign(pipeline->fingerprint,
                                    LoadFailure{*failure, std::chrono::steady_clock::now() + kLoadFailureMemory});
  }
  return started;
}

void PythonExecutor::give_back(std::unique_ptr<PythonChild> child) {
  std::unique_ptr<PythonChild> surplus;  // declared before the lock: its process ends outside of it
  std::lock_guard lock(mutex_);
  idle_.push_front(std::move(child));
  if (idle_.size() <= children_max_) return;
  surplus = std::move(idle_.back());
  idle_.pop_back();
}

std::optional<BatchFailure> PythonExecutor::warm(const PipelineHandle& pipeline, const std::stop_token& stop) {
  auto taken = take_child(pipeline, stop);
  if (auto* failure = std::get_if<BatchFailure>(&taken)) return std::move(*failure);
  give_back(std::get<std::unique_ptr<PythonChild>>(std::move(taken)));
  return std::nullopt;
}

std::variant<Batch, BatchFailure> PythonExecutor::run(const BatchRequest& request, const std::stop_token& stop,
                                                      const std::function<bool()>& cancelled) {
  std::string how;
  for (int attempt = 0; attempt < kAttempts && !stop.stop_requested() && !cancelled(); ++attempt) {
    auto taken = take_child(request.pipeline, stop);
    if (auto* failure = std::get_if<BatchFailure>(&taken)) return std::move(*failure);
    auto child = std::get<std::unique_ptr<PythonChild>>(std::move(taken));
    auto outcome = child->run(request, stop, cancelled);
    if (auto* lost = std::get_if<ChildLost>(&outcome)) {
      how = lost->how;
      log_warning("executor", "python child lost", {{"how", how}, {"attempt", attempt + 1}});
      continue;
    }
    give_back(std::move(child));
    if (auto* failure = std::get_if<BatchFailure>(&outcome)) return std::move(*failure);
    return std::get<Batch>(std::move(outcome));
  }
  if (stop.stop_requested() || cancelled())
    return to_failure(Error(ErrorCode::kCancelled, "the batch is no longer wanted"));
  BatchFailure failure;
  failure.failure = {"RuntimeError", how + " (twice, with the same batch)", ""};
  return failure;
}

}  // namespace sluice::executor
