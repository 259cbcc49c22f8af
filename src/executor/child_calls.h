// The questions of one Python child for results of marked functions, and what it sends to be kept.
//
// Calls may be within calls, so several may be unanswered for: the child makes them, and then sends them or not.
// Thread safety: none.
#pragma once

#include <map>

#include "src/executor/kept_calls.h"
#include "src/transport/frame.h"
#include "src/transport/local_message.h"

namespace sluice::executor {

class ChildCalls {
 public:
  static constexpr std::size_t kMakingMax = 64;

  // `kept` null: there is no cache, and whatever is asked for is not there.
  explicit ChildCalls(std::shared_ptr<KeptCalls> kept) : kept_(std::move(kept)) {}

  // A batch begins: what was in the making is not sent any more.
  void begin();
  // Answers the child. `arguments`: the frame's blob. Errors: the socket's.
  Result<void> answer(transport::FindMessage message, std::string arguments, transport::FrameSocket& socket,
                      transport::FrameSocket::Deadline deadline);
  void keep(const transport::KeepMessage& message, std::string_view value);
  // The batch is made.
  std::vector<transport::KeptCost> report(const std::vector<transport::CallReport>& reports);

  // CPU that this thread has taken for the batch. The child has waited meanwhile.
  double busy_seconds() const { return busy_seconds_; }

 private:
  struct Making {
    transport::FunctionCall call;
    FileStates files;
  };

  const std::shared_ptr<KeptCalls> kept_;
  std::map<std::uint64_t, Making> making_;
  std::vector<std::uint8_t> value_;  // its capacity is reused
  double busy_seconds_ = 0;
};

}  // namespace sluice::executor
