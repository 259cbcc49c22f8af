#include "src/executor/child_calls.h"

#include "src/executor/process_times.h"

namespace sluice::executor {
namespace {

// One large result must not hold its memory for as long as the child lives.
constexpr std::size_t kValueKeptBytesMax = std::size_t{4} << 20;

}  // namespace

void ChildCalls::begin() {
  making_.clear();
  busy_seconds_ = 0;
}

Result<void> ChildCalls::answer(transport::FindMessage message, std::string arguments, transport::FrameSocket& socket,
                                transport::FrameSocket::Deadline deadline) {
  const double started_seconds = thread_cpu_seconds();
  message.call.arguments = std::move(arguments);
  KeptCalls::Answer answer;
  value_.clear();
  if (kept_ != nullptr && message.call.arguments.size() <= transport::kArgumentBytesMax)
    answer = kept_->find(message.call, value_);
  if (!answer.is_found) value_.clear();
  const bool keeps = answer.files.has_value() && making_.size() < kMakingMax;
  const auto sent = socket.send(to_json(transport::FoundMessage{.id = message.id,
                                                                .is_found = answer.is_found,
                                                                .keeps = keeps,
                                                                .rest = answer.rest,
                                                                .seconds = answer.seconds}),
                                {reinterpret_cast<const char*>(value_.data()), value_.size()}, deadline);
  if (keeps) making_.insert_or_assign(message.id, Making{std::move(message.call), *std::move(answer.files)});
  if (value_.capacity() > kValueKeptBytesMax) value_ = {};
  busy_seconds_ += thread_cpu_seconds() - started_seconds;
  return sent;
}

void ChildCalls::keep(const transport::KeepMessage& message, std::string_view value) {
  const double started_seconds = thread_cpu_seconds();
  const auto made = making_.extract(message.id);
  if (!made.empty() && kept_ != nullptr)
    kept_->keep(made.mapped().call, made.mapped().files,
                {reinterpret_cast<const std::uint8_t*>(value.data()), value.size()});
  busy_seconds_ += thread_cpu_seconds() - started_seconds;
}

std::vector<transport::KeptCost> ChildCalls::report(const std::vector<transport::CallReport>& reports) {
  return kept_ != nullptr ? kept_->report(reports) : std::vector<transport::KeptCost>();
}

}  // namespace sluice::executor
