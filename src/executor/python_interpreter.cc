#include "src/executor/python_interpreter.h"

#include <sys/socket.h>

#include <cstdlib>

#include "src/transport/local_message.h"

namespace sluice::executor {
namespace {

using Clock = std::chrono::steady_clock;
using transport::ChildErrorMessage;

// A socket closes before its process has ended. A kill in between would hide how the process ends.
constexpr std::chrono::seconds kGiveUpTimeMax{1};

std::vector<std::string> interpreter_environment(const PythonOptions& options) {
  std::vector<std::string> environment;
  if (!options.python_path.empty()) {
    const char* before = std::getenv("PYTHONPATH");
    environment.push_back("PYTHONPATH=" + options.python_path +
                          (before != nullptr && *before != '\0' ? ":" + std::string(before) : ""));
  }
  // One child a thread: a second level of parallelism inside would only make them fight for the quota.
  // numpy's would start when it is imported, and what has threads cannot be forked.
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
    if (std::getenv(name) == nullptr) environment.push_back(std::string(name) + "=1");
  return environment;
}

}  // namespace

BatchFailure executor_failure(std::string message) {
  BatchFailure failure;
  failure.failure = {"ExecutorLost", std::move(message), ""};
  failure.executor_fault = true;
  return failure;
}

Result<SocketPair> connected_sockets() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) return errno_error("socketpair");
  return SocketPair{transport::UniqueFd(fds[0]), transport::UniqueFd(fds[1])};
}

Result<PythonInterpreter> spawn_interpreter(const PythonOptions& options, ProcessSpawner& spawner,
                                            const std::string& python) {
  SLUICE_TRY(SocketPair sockets, connected_sockets());
  const ProcessCommand command{
      .arguments = {python, "-m", "sluice.executor", "--socket-fd", std::to_string(sockets.theirs.get()), "--arena-fd",
                    std::to_string(options.arena->fd())},
      .environment = interpreter_environment(options),
      .inherited_fds = {sockets.theirs.get(), options.arena->fd()},
      .nice = options.nice,
  };
  SLUICE_TRY(auto process, spawner.spawn(command));
  // This process's copy of that end is closed with `sockets`: its end is then the end of the socket, also while it
  // loads.
  return PythonInterpreter{std::move(process), transport::FrameSocket(std::move(sockets.ours))};
}

std::string give_up(Process& process, const Error& error) {
  const std::string who = "the Python process " + std::to_string(process.pid()) + " ";
  // How it ended tells more than the broken socket does, unless it is fine and only spoke nonsense.
  if (error.code() == ErrorCode::kUnavailable) return who + process.end_within(kGiveUpTimeMax);
  process.end();
  return who + "was given up: " + error.message();
}

std::optional<BatchFailure> load_pipeline(PythonInterpreter& interpreter, const Pipeline& pipeline,
                                          const PythonOptions& options, const std::stop_token& stop) {
  const auto lost = [&](const Error& error) {
    return executor_failure(give_up(*interpreter.process, error) + ", while it was loading the pipeline");
  };
  const auto deadline = Clock::now() + options.start_time_max;
  const auto sent = interpreter.socket.send(transport::load_json(pipeline.number, options.kept != nullptr), "",
                                            deadline, pipeline.blob->fd());
  if (!sent.ok()) return lost(sent.error());
  auto frame = interpreter.socket.receive(deadline, stop);
  if (!frame.ok()) return lost(frame.error());
  auto message = transport::parse_child_message(frame->json);
  if (!message.ok()) return lost(message.error());
  if (auto* error = std::get_if<ChildErrorMessage>(&*message)) {
    return BatchFailure{std::move(error->failure), std::move(frame->blob), false};
  }
  if (!std::holds_alternative<transport::LoadedMessage>(*message)) {
    return lost(internal_error("it answered load with something else"));
  }
  return std::nullopt;
}

}  // namespace sluice::executor
