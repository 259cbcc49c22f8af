// Results of the user's marked functions, for all Python children of this process: what is kept is decided by one
// ledger for each function, over all children.
//
// Where the results are is the business of a ResultStore: nothing there is an error, what it does not give is made.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "src/base/clock.h"
#include "src/executor/call_ledger.h"
#include "src/pipeline/file_reader.h"
#include "src/transport/function_call.h"

namespace sluice::executor {

// Of the files that a call names, in their order.
using FileStates = std::vector<pipeline::FileIdentity>;

// Thread safety: all methods may be called from any thread.
class ResultStore {
 public:
  virtual ~ResultStore() = default;

  // Whether anything can be found or kept now.
  virtual bool is_in_use() const = 0;

  // nullopt: a file is not there, or no regular file.
  virtual std::optional<FileStates> states_of(const transport::FunctionCall& call) const = 0;
  // Replaces `value` with the result. False: it is not here, and `value` is unspecified.
  virtual bool find(const transport::FunctionCall& call, const FileStates& files, std::vector<std::uint8_t>& value) = 0;
  virtual bool has_room_for(const transport::FunctionCall& call, const FileStates& files, std::size_t value_bytes) = 0;
  // `files`: before the call. Keeps nothing where one has changed since, or may have.
  virtual void keep(const transport::FunctionCall& call, const FileStates& files,
                    std::span<const std::uint8_t> value) = 0;

  // So many values were damaged, and so many answers late.
  virtual void count_errors(std::uint64_t damaged, std::uint64_t late) = 0;
};

// Thread safety: all methods may be called from any thread.
class KeptCalls {
 public:
  static constexpr std::size_t kFunctionsMax = 256;
  static constexpr std::uint64_t kRestWithoutStore = 8;
  static constexpr std::uint64_t kRestBeyondFunctions = 1 << 20;

  // REQUIRES: the clock outlives this.
  KeptCalls(std::shared_ptr<ResultStore> store, const Clock& clock) : store_(std::move(store)), clock_(clock) {}

  struct Answer {
    bool is_found = false;
    std::uint64_t rest = 0;           // so many calls of the asking process need no question
    double seconds = 0;               // that it took, by the clock
    std::optional<FileStates> files;  // set where the result is to be kept: for keep()
  };
  Answer find(const transport::FunctionCall& call, std::vector<std::uint8_t>& value);
  void keep(const transport::FunctionCall& call, const FileStates& files, std::span<const std::uint8_t> value);

  // What a batch's calls were. Its owner is told in people's terms.
  std::vector<transport::KeptCost> report(const std::vector<transport::CallReport>& reports);

 private:
  struct Function {
    CallLedger ledger;
    std::size_t value_bytes = 0;  // of the last one kept
  };

  Answer look(const transport::FunctionCall& call, std::vector<std::uint8_t>& value);
  double seconds_since(Clock::TimePoint start) const;
  // Null beyond the bound. REQUIRES: the lock is held.
  Function* function(const std::string& name);

  const std::shared_ptr<ResultStore> store_;
  const Clock& clock_;
  std::mutex mutex_;
  std::map<std::string, Function> functions_;
};

}  // namespace sluice::executor
