#include "src/executor/python_child.h"

#include <sys/socket.h>

#include <cstdlib>

#include "src/base/logging.h"

namespace sluice::executor {
namespace {

using transport::ChildErrorMessage;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kCancelPoll{100};
constexpr std::chrono::seconds kSendTimeMax{60};

BatchFailure executor_failure(std::string message) {
  BatchFailure failure;
  failure.failure = {"RuntimeError", std::move(message), ""};
  failure.executor_fault = true;
  return failure;
}

BatchFailure user_failure(ChildErrorMessage message, std::string exception) {
  return {std::move(message.failure), std::move(exception), false};
}

std::vector<std::string> child_environment(const PythonOptions& options) {
  std::vector<std::string> environment;
  if (!options.python_path.empty()) {
    const char* before = std::getenv("PYTHONPATH");
    environment.push_back("PYTHONPATH=" + options.python_path +
                          (before != nullptr && *before != '\0' ? ":" + std::string(before) : ""));
  }
  // One child a thread: a second level of parallelism inside would only make them fight for the quota.
  if (std::getenv("OMP_NUM_THREADS") == nullptr) environment.emplace_back("OMP_NUM_THREADS=1");
  return environment;
}

}  // namespace

PythonChild::PythonChild(const PythonOptions& options, PipelineHandle pipeline, std::unique_ptr<Process> process,
                         transport::UniqueFd socket)
    : options_(options), pipeline_(std::move(pipeline)), process_(std::move(process)), socket_(std::move(socket)) {}

std::variant<std::unique_ptr<PythonChild>, BatchFailure> PythonChild::start(const PythonOptions& options,
                                                                            ProcessSpawner& spawner,
                                                                            PipelineHandle pipeline,
                                                                            const std::stop_token& stop) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return executor_failure(errno_error("socketpair").message());
  }
  transport::UniqueFd ours(fds[0]);
  transport::UniqueFd theirs(fds[1]);
  const ProcessCommand command{
      .arguments = {pipeline->python, "-m", "sluice.executor", "--socket-fd", std::to_string(theirs.get()),
                    "--arena-fd", std::to_string(options.arena->fd())},
      .environment = child_environment(options),
      .inherited_fds = {theirs.get(), options.arena->fd()},
      .nice = options.nice,
  };
  auto process = spawner.spawn(command);
  theirs.reset();  // the child's copy is the only one: its end is the end of the socket, also while it loads
  if (!process.ok()) return executor_failure(process.error().message());
  log_debug("executor", "python child started",
            {{"pid", (*process)->pid()}, {"pipeline", pipeline->fingerprint.substr(0, 12)}});
  std::unique_ptr<PythonChild> child(
      new PythonChild(options, std::move(pipeline), std::move(process).value(), std::move(ours)));
  if (auto failure = child->load(stop)) return *std::move(failure);
  return child;
}

ChildLost PythonChild::lose(const Error& error) {
  lost_ = true;
  // Reading its end tells more than the broken socket does, unless the child is fine and only spoke nonsense.
  const std::string ending = process_->end();
  const bool spoke_nonsense = error.code() != ErrorCode::kUnavailable;
  return {"the Python process " + std::to_string(process_->pid()) + " " +
          (spoke_nonsense ? "was given up: " + error.message() : ending)};
}

std::optional<BatchFailure> PythonChild::load(const std::stop_token& stop) {
  const auto deadline = Clock::now() + options_.start_time_max;
  if (const auto sent = socket_.send(transport::load_json(pipeline_->number), pipeline_->blob, deadline); !sent.ok()) {
    return executor_failure(lose(sent.error()).how);
  }
  auto frame = socket_.receive(deadline, stop);
  if (!frame.ok()) return executor_failure(lose(frame.error()).how + ", while it was loading the pipeline");
  auto message = transport::parse_child_message(frame->json);
  if (!message.ok()) return executor_failure(lose(message.error()).how);
  if (auto* error = std::get_if<ChildErrorMessage>(&*message)) {
    return user_failure(std::move(*error), std::move(frame->blob));
  }
  if (!std::holds_alternative<transport::LoadedMessage>(*message)) {
    return executor_failure(lose(internal_error("it answered load with something else")).how);
  }
  return std::nullopt;
}

Result<transport::Frame> PythonChild::next_frame(const std::stop_token& stop, const std::function<bool()>& cancelled) {
  std::optional<Clock::time_point> give_up;
  while (true) {
    auto frame = socket_.receive(Clock::now() + kCancelPoll, stop);
    if (frame.ok() || frame.error().code() != ErrorCode::kDeadlineExceeded) return frame;
    if (!cancelled()) continue;
    if (!give_up) give_up = Clock::now() + options_.cancel_grace;
    if (Clock::now() >= *give_up) return Error(ErrorCode::kCancelled, "nobody wants its batch any more");
  }
}

Result<void> PythonChild::answer_alloc(const transport::AllocMessage& message, const std::stop_token& stop,
                                       transport::ArenaSlot& slot) {
  const auto deadline = Clock::now() + kSendTimeMax;
  auto granted = options_.arena->allocate(message.bytes, stop);
  if (!granted.ok()) return socket_.send(transport::no_slot_json(message.id, granted.error().message()), "", deadline);
  slot = std::move(granted).value();
  return socket_.send(transport::slot_json(message.id, slot.offset()), "", deadline);
}

PythonChild::Outcome PythonChild::finish(transport::DoneMessage message, std::string structure,
                                         transport::ArenaSlot slot) {
  for (const auto& tensor : message.tensors) {
    if (slot.valid() && tensor.offset <= slot.bytes() && tensor.nbytes <= slot.bytes() - tensor.offset) continue;
    return lose(internal_error("it described a tensor outside its slot"));
  }
  return Batch{std::move(slot), std::move(message.tensors), std::move(structure), message.seconds};
}

PythonChild::Outcome PythonChild::run(const BatchRequest& request, const std::stop_token& stop,
                                      const std::function<bool()>& cancelled) {
  const std::uint64_t id = next_id_++;
  const std::uint32_t workers = std::max<std::uint32_t>(1, pipeline_->num_workers);
  const transport::ExecuteMessage execute{
      .id = id,
      .pipeline = pipeline_->number,
      .stream = request.stream,
      .seq = request.seq,
      .base_seed = request.base_seed,
      .epoch = request.epoch,
      .position = request.position,
      .indices = &request.indices,
      .worker_id = static_cast<std::uint32_t>(request.seq % workers),
      .num_workers = workers,
  };
  if (const auto sent = socket_.send(to_json(execute), "", Clock::now() + kSendTimeMax); !sent.ok()) {
    return lose(sent.error());
  }
  transport::ArenaSlot slot;
  while (true) {
    auto frame = next_frame(stop, cancelled);
    if (!frame.ok()) return lose(frame.error());
    auto message = transport::parse_child_message(frame->json);
    if (!message.ok()) return lose(message.error());
    if (const auto* alloc = std::get_if<transport::AllocMessage>(&*message); alloc != nullptr && alloc->id == id) {
      if (const auto sent = answer_alloc(*alloc, stop, slot); !sent.ok()) return lose(sent.error());
    } else if (auto* done = std::get_if<transport::DoneMessage>(&*message); done != nullptr && done->id == id) {
      return finish(std::move(*done), std::move(frame->blob), std::move(slot));
    } else if (auto* error = std::get_if<ChildErrorMessage>(&*message)) {
      return user_failure(std::move(*error), std::move(frame->blob));
    } else {
      return lose(internal_error("it answered a request that nobody made"));
    }
  }
}

}  // namespace sluice::executor
