#include "src/executor/python_zygotes.h"

#include "src/base/logging.h"

namespace sluice::executor {

std::optional<PythonZygotes::Entry> PythonZygotes::known(const Key& key, const PipelineHandle& pipeline,
                                                         const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto [entry, is_new] = entries_.try_emplace(key);
    if (is_new) return std::nullopt;
    if (!entry->second.starting) {
      entry->second.used = Clock::now();
      entry->second.pipeline = pipeline;
      return entry->second;
    }
    // The entry may be gone by then: the thread that was starting it has failed.
    const auto decided = [&] {
      const auto now = entries_.find(key);
      return now == entries_.end() || !now->second.starting;
    };
    if (!started_.wait(lock, stop, decided)) return Entry{};
  }
}

void PythonZygotes::remember(const Key& key, std::shared_ptr<PythonZygote> zygote, const PipelineHandle& pipeline) {
  {
    std::lock_guard lock(mutex_);
    entries_.insert_or_assign(key,
                              Entry{false, std::move(zygote), pipeline ? pipeline->number : 0, pipeline, Clock::now()});
  }
  started_.notify_all();
}

void PythonZygotes::forget(const Key& key, const std::shared_ptr<PythonZygote>& zygote) {
  {
    std::lock_guard lock(mutex_);
    const auto entry = entries_.find(key);
    if (entry != entries_.end() && entry->second.zygote == zygote) entries_.erase(entry);
  }
  started_.notify_all();
}

Result<PythonInterpreter> PythonZygotes::fresh_interpreter(const std::string& python, const std::stop_token& stop) {
  const Key key{python, ""};
  const auto entry = known(key, nullptr, stop);
  std::shared_ptr<PythonZygote> zygote = entry ? entry->zygote : nullptr;
  if (!entry) {
    auto spawned = spawn_interpreter(options_, spawner_, python);
    if (!spawned.ok()) {
      forget(key, nullptr);
      return spawned.error();
    }
    zygote = std::make_shared<PythonZygote>(std::move(spawned).value());
    remember(key, zygote, nullptr);
  }
  if (zygote == nullptr) return spawn_interpreter(options_, spawner_, python);
  auto forked = zygote->fork(options_.start_time_max, stop);
  if (forked.ok()) return forked;
  forget(key, zygote);
  if (forked.error().code() != ErrorCode::kResourceExhausted) return forked;
  log_info("executor", "python interpreters are started one by one", {{"reason", forked.error().message()}});
  remember(key, nullptr, nullptr);
  return spawn_interpreter(options_, spawner_, python);
}

std::unique_ptr<PythonChild> PythonZygotes::child_of(const PipelineHandle& pipeline, std::uint64_t number,
                                                     PythonInterpreter interpreter) {
  return std::make_unique<PythonChild>(options_, pipeline, number, std::move(interpreter));
}

PythonZygotes::ChildOrFailure PythonZygotes::load_alone(const PipelineHandle& pipeline, const std::stop_token& stop) {
  auto interpreter = fresh_interpreter(pipeline->python, stop);
  if (!interpreter.ok()) return executor_failure(interpreter.error().message());
  if (auto failure = load_pipeline(*interpreter, *pipeline, options_, stop)) return *std::move(failure);
  return child_of(pipeline, pipeline->number, std::move(interpreter).value());
}

PythonZygotes::ChildOrFailure PythonZygotes::load_first(const Key& key, const PipelineHandle& pipeline,
                                                        const std::stop_token& stop) {
  auto interpreter = fresh_interpreter(pipeline->python, stop);
  std::optional<BatchFailure> failure;
  if (!interpreter.ok()) failure = executor_failure(interpreter.error().message());
  if (!failure) failure = load_pipeline(*interpreter, *pipeline, options_, stop);
  if (failure) {
    forget(key, nullptr);
    return *std::move(failure);
  }
  auto zygote = std::make_shared<PythonZygote>(std::move(interpreter).value());
  auto forked = zygote->fork(options_.start_time_max, stop);
  if (forked.ok()) {
    remember(key, zygote, pipeline);
    return child_of(pipeline, pipeline->number, std::move(forked).value());
  }
  if (forked.error().code() != ErrorCode::kResourceExhausted) {
    forget(key, nullptr);
    return executor_failure(forked.error().message());
  }
  log_warning("executor", "a python pipeline cannot be forked: each of its processes loads it",
              {{"reason", forked.error().message()}, {"pipeline", pipeline->fingerprint.substr(0, 12)}});
  remember(key, nullptr, pipeline);
  return child_of(pipeline, pipeline->number, std::move(*zygote).release());
}

PythonZygotes::ChildOrFailure PythonZygotes::start_child(const PipelineHandle& pipeline, const std::stop_token& stop) {
  const Key key{pipeline->python, pipeline->fingerprint};
  const auto entry = known(key, pipeline, stop);
  if (!entry) return load_first(key, pipeline, stop);
  if (entry->starting) return executor_failure("stopped while it waited for an interpreter");
  if (entry->zygote == nullptr) return load_alone(pipeline, stop);
  auto forked = entry->zygote->fork(options_.start_time_max, stop);
  if (forked.ok()) return child_of(pipeline, entry->number, std::move(forked).value());
  forget(key, entry->zygote);
  // It was there a while ago: another one may come up.
  return load_alone(pipeline, stop);
}

bool PythonZygotes::has_loaded(const Pipeline& pipeline) {
  std::lock_guard lock(mutex_);
  const auto entry = entries_.find({pipeline.python, pipeline.fingerprint});
  return entry != entries_.end() && !entry->second.starting;
}

void PythonZygotes::end_idle() {
  std::map<Key, Entry> ended;  // declared before the lock: their processes end outside of it
  std::lock_guard lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    const bool has_children = entry->second.zygote.use_count() > 1;
    if (has_children) entry->second.used = Clock::now();
    const bool is_orphan = !entry->first.second.empty() && entry->second.pipeline.expired();
    const auto time_max = is_orphan ? options_.orphan_time_max : options_.idle_time_max;
    const bool is_in_use = entry->second.starting || has_children;
    if (!is_in_use && Clock::now() - entry->second.used >= time_max) ended.insert(entries_.extract(entry));
    entry = next;
  }
}

}  // namespace sluice::executor
