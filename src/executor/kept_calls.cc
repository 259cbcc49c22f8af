#include "src/executor/kept_calls.h"

namespace sluice::executor {

using transport::CallReport;
using transport::FunctionCall;

KeptCalls::Function* KeptCalls::function(const std::string& name) {
  if (functions_.size() >= kFunctionsMax && !functions_.contains(name)) return nullptr;
  return &functions_[name];
}

double KeptCalls::seconds_since(Clock::TimePoint start) const {
  return std::chrono::duration<double>(clock_.now() - start).count();
}

KeptCalls::Answer KeptCalls::find(const FunctionCall& call, std::vector<std::uint8_t>& value) {
  const auto start = clock_.now();
  Answer answer = look(call, value);
  answer.seconds = seconds_since(start);
  return answer;
}

KeptCalls::Answer KeptCalls::look(const FunctionCall& call, std::vector<std::uint8_t>& value) {
  if (!store_->is_in_use()) return {.rest = kRestWithoutStore};
  CallLedger::Advice advice;
  std::size_t value_bytes = 0;
  {
    std::lock_guard lock(mutex_);
    Function* const known = function(call.function);
    if (known == nullptr) return {.rest = kRestBeyondFunctions};
    advice = known->ledger.next();
    value_bytes = known->value_bytes;
  }
  if (!advice.asks) return {.rest = advice.rest};
  auto files = store_->states_of(call);
  if (!files) return {.rest = advice.rest};
  if (store_->find(call, *files, value)) {
    std::lock_guard lock(mutex_);
    function(call.function)->ledger.note_found();
    return {.is_found = true, .rest = advice.rest};
  }
  if (!advice.keeps || !store_->has_room_for(call, *files, value_bytes)) files.reset();
  return {.is_found = false, .rest = advice.rest, .files = std::move(files)};
}

void KeptCalls::keep(const FunctionCall& call, const FileStates& files, std::span<const std::uint8_t> value) {
  const auto start = clock_.now();
  if (store_->has_room_for(call, files, value.size())) store_->keep(call, files, value);
  const double seconds = seconds_since(start);
  std::lock_guard lock(mutex_);
  Function* const known = function(call.function);
  if (known == nullptr) return;
  known->value_bytes = value.size();
  known->ledger.note_kept(seconds);
}

std::vector<transport::KeptCost> KeptCalls::report(const std::vector<CallReport>& reports) {
  std::vector<transport::KeptCost> costs;
  for (const CallReport& report : reports) {
    store_->count_errors(report.damaged, report.late);
    std::lock_guard lock(mutex_);
    Function* const known = function(report.function);
    if (known == nullptr) continue;
    known->ledger.add(report);
    costs.push_back({report.function, report.calls + report.cold_calls + report.hits, report.hits,
                     known->ledger.saved_seconds(report), report.hit_bytes});
  }
  return costs;
}

}  // namespace sluice::executor
