#include "src/executor/python_child.h"

#include "src/transport/local_message.h"

namespace sluice::executor {
namespace {

using transport::ChildErrorMessage;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kCancelPoll{100};
constexpr std::chrono::seconds kSendTimeMax{60};

BatchFailure user_failure(ChildErrorMessage message, std::string exception) {
  return {std::move(message.failure), std::move(exception), false};
}

}  // namespace

PythonChild::PythonChild(const PythonOptions& options, const PipelineHandle& pipeline, std::uint64_t number,
                         PythonInterpreter interpreter)
    : options_(options),
      pipeline_(pipeline),
      fingerprint_(pipeline->fingerprint),
      python_(pipeline->python),
      owner_(pipeline->owner),
      number_(number),
      held_files_(interpreter.process->pid()),
      interpreter_(std::move(interpreter)),
      calls_(options.kept) {}

ChildLost PythonChild::lose(const Error& error) {
  lost_ = true;
  return {give_up(*interpreter_.process, error)};
}

Result<transport::Frame> PythonChild::next_frame(const Pipeline& pipeline, const std::stop_token& stop,
                                                 const std::function<bool()>& cancelled) {
  std::optional<Clock::time_point> give_up;
  while (true) {
    auto frame = interpreter_.socket.receive(Clock::now() + kCancelPoll, stop);
    if (frame.ok() || frame.error().code() != ErrorCode::kDeadlineExceeded) return frame;
    // A process that the child has started may still hold its end of the socket.
    if (has_ended()) return unavailable("its process has ended");
    look(pipeline);
    if (!cancelled()) continue;
    if (!give_up) give_up = Clock::now() + options_.cancel_grace;
    if (Clock::now() >= *give_up) return Error(ErrorCode::kCancelled, "its batch was cancelled");
  }
}

void PythonChild::look(const Pipeline& pipeline) {
  if (!is_watched_) return;
  const auto now = process_times(pid());
  if (!now) return;
  const auto before = std::exchange(seen_, now);
  if (!before) return;
  const double busy_seconds = now->busy_seconds - before->busy_seconds;
  const double blocked_seconds = now->blocked_seconds_since(*before);
  told_busy_seconds_ += busy_seconds;
  told_blocked_seconds_ += blocked_seconds;
  tell(pipeline, busy_seconds, blocked_seconds);
}

void PythonChild::tell(const Pipeline& pipeline, double busy_seconds, double blocked_seconds) {
  if (pipeline.waits->observe(busy_seconds, blocked_seconds) && options_.load_changed) options_.load_changed(pipeline);
}

Result<void> PythonChild::answer_alloc(const transport::AllocMessage& message, const std::stop_token& stop,
                                       transport::ArenaSlot& slot) {
  const auto deadline = Clock::now() + kSendTimeMax;
  auto granted = options_.arena->allocate(message.bytes, stop);
  if (!granted.ok())
    return interpreter_.socket.send(transport::no_slot_json(message.id, granted.error().message()), "", deadline);
  slot = std::move(granted).value();
  return interpreter_.socket.send(transport::slot_json(message.id, slot.offset()), "", deadline);
}

PythonChild::Outcome PythonChild::finish(const Pipeline& pipeline, transport::DoneMessage message,
                                         std::string structure, transport::ArenaSlot slot) {
  for (const auto& tensor : message.tensors) {
    if (slot.valid() && tensor.offset <= slot.bytes() && tensor.nbytes <= slot.bytes() - tensor.offset) continue;
    return lose(internal_error("it described a tensor outside its slot"));
  }
  // While this thread looked for results, the child was not idle: it had handed that work over.
  message.seconds += calls_.busy_seconds();
  if (message.blocked_seconds) *message.blocked_seconds -= std::min(*message.blocked_seconds, calls_.busy_seconds());
  if (message.blocked_seconds)
    tell(pipeline, message.seconds - told_busy_seconds_, *message.blocked_seconds - told_blocked_seconds_);
  return Batch{std::move(slot),   std::move(message.tensors),  std::move(structure),
               message.seconds,   message.blocked_seconds,     std::move(message.ops),
               held_files_.any(), calls_.report(message.kept), message.from_memory};
}

Result<void> PythonChild::send_state(const BatchRequest& request) {
  const std::uint64_t wanted = request.state == nullptr ? 0 : request.state->number;
  if (std::exchange(state_number_, wanted) == wanted) return {};
  const std::string_view blob = request.state == nullptr ? std::string_view() : request.state->blob;
  return interpreter_.socket.send(transport::state_json(number_), blob, Clock::now() + kSendTimeMax);
}

PythonChild::Outcome PythonChild::run(const BatchRequest& request, const std::stop_token& stop,
                                      const std::function<bool()>& cancelled) {
  auto outcome = make(request, stop, cancelled);
  const auto* batch = std::get_if<Batch>(&outcome);
  pass_ = request.base_seed;
  has_read_ |= batch == nullptr || !batch->from_memory;
  return outcome;
}

PythonChild::Outcome PythonChild::make(const BatchRequest& request, const std::stop_token& stop,
                                       const std::function<bool()>& cancelled) {
  const std::uint64_t id = next_id_++;
  const transport::ExecuteMessage execute{
      .id = id,
      .pipeline = number_,
      .batch = &request,
      .worker_id = request.virtual_worker(),
      .num_workers = std::max<std::uint32_t>(1, request.pipeline->num_workers),
  };
  if (const auto sent = send_state(request); !sent.ok()) return lose(sent.error());
  // A child that is new makes again what its virtual worker has made before.
  std::string_view made;
  if (id == 1 && request.virtual_workers != nullptr) made = request.virtual_workers->made.at(request.virtual_worker());
  if (const auto sent = interpreter_.socket.send(to_json(execute), made, Clock::now() + kSendTimeMax); !sent.ok()) {
    return lose(sent.error());
  }
  transport::ArenaSlot slot;
  is_watched_ = true;
  seen_.reset();
  told_busy_seconds_ = told_blocked_seconds_ = 0;
  calls_.begin();
  while (true) {
    auto frame = next_frame(*request.pipeline, stop, cancelled);
    if (!frame.ok()) return lose(frame.error());
    auto message = transport::parse_child_message(frame->json);
    if (!message.ok()) return lose(message.error());
    if (const auto* alloc = std::get_if<transport::AllocMessage>(&*message); alloc != nullptr && alloc->id == id) {
      is_watched_ = false;  // it is made, and may wait for memory now
      if (const auto sent = answer_alloc(*alloc, stop, slot); !sent.ok()) return lose(sent.error());
    } else if (auto* done = std::get_if<transport::DoneMessage>(&*message); done != nullptr && done->id == id) {
      return finish(*request.pipeline, std::move(*done), std::move(frame->blob), std::move(slot));
    } else if (auto* find = std::get_if<transport::FindMessage>(&*message)) {
      const auto sent =
          calls_.answer(std::move(*find), std::move(frame->blob), interpreter_.socket, Clock::now() + kSendTimeMax);
      if (!sent.ok()) return lose(sent.error());
    } else if (const auto* keep = std::get_if<transport::KeepMessage>(&*message)) {
      calls_.keep(*keep, frame->blob);
    } else if (auto* error = std::get_if<ChildErrorMessage>(&*message)) {
      return user_failure(std::move(*error), std::move(frame->blob));
    } else {
      return lose(internal_error("it answered a request that was not made"));
    }
  }
}

}  // namespace sluice::executor
