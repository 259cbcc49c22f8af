#include "src/executor/python_zygote.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>

#include "src/transport/local_message.h"

namespace sluice::executor {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kReapTimeMax{10};
constexpr int kKillMilliseconds = 10'000;

// Signals through a descriptor cannot reach another process that got the same number later.
class ForkedProcess final : public Process {
 public:
  ForkedProcess(pid_t pid, transport::UniqueFd pidfd, std::shared_ptr<PythonZygote> parent)
      : Process(pid), pidfd_(std::move(pidfd)), parent_(std::move(parent)) {}
  ~ForkedProcess() override { ForkedProcess::end(); }

  bool has_ended() override { return ending_ || wait(0); }

  std::string end() override {
    if (ending_) return *ending_;
    if (!has_ended()) {
      ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
      wait(kKillMilliseconds);
    }
    ending_ = parent_->reap(pid());
    return *ending_;
  }

 private:
  bool wait(int milliseconds) const {
    pollfd entry{pidfd_.get(), POLLIN, 0};
    int count = 0;
    do {
      count = ::poll(&entry, 1, milliseconds);
    } while (count < 0 && errno == EINTR);
    return count > 0;
  }

  transport::UniqueFd pidfd_;
  std::shared_ptr<PythonZygote> parent_;
  std::optional<std::string> ending_;
};

}  // namespace

Result<transport::ChildMessage> PythonZygote::exchange(const std::string& json, std::chrono::seconds time_max,
                                                       const std::stop_token& stop, int passed_fd) {
  const auto deadline = Clock::now() + time_max;
  SLUICE_TRY_VOID(interpreter_.socket.send(json, "", deadline, passed_fd));
  SLUICE_TRY(const transport::Frame frame, interpreter_.socket.receive(deadline, stop));
  return transport::parse_child_message(frame.json);
}

Result<PythonInterpreter> PythonZygote::fork(std::chrono::seconds time_max, const std::stop_token& stop) {
  std::lock_guard lock(mutex_);
  SLUICE_TRY(SocketPair sockets, connected_sockets());
  const auto lost = [&](const Error& error) { return unavailable(give_up(*interpreter_.process, error)); };
  auto answer = exchange(transport::fork_json(), time_max, stop, sockets.theirs.get());
  if (!answer.ok()) return lost(answer.error());
  if (const auto* refusal = std::get_if<transport::ChildErrorMessage>(&*answer))
    return Error(ErrorCode::kResourceExhausted, refusal->failure.message);
  const auto* forked = std::get_if<transport::ForkedMessage>(&*answer);
  if (forked == nullptr) return lost(internal_error("it answered fork with something else"));
  const auto pid = static_cast<pid_t>(forked->pid);
  transport::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd.get() < 0) return lost(errno_error("pidfd_open"));
  return PythonInterpreter{std::make_unique<ForkedProcess>(pid, std::move(pidfd), shared_from_this()),
                           transport::FrameSocket(std::move(sockets.ours))};
}

std::string PythonZygote::reap(pid_t pid) {
  std::lock_guard lock(mutex_);
  auto answer = exchange(transport::reap_json(pid), kReapTimeMax, {});
  if (answer.ok()) {
    if (const auto* reaped = std::get_if<transport::ReapedMessage>(&*answer))
      return how_it_ended(static_cast<int>(reaped->status));
    answer = internal_error("it answered reap with something else");
  }
  return "ended with its parent: " + give_up(*interpreter_.process, answer.error());
}

}  // namespace sluice::executor
