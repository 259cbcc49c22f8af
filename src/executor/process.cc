#include "src/executor/process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <map>

#include "src/transport/unique_fd.h"

extern char** environ;

namespace sluice::executor {
namespace {

std::vector<std::string> merged_environment(const std::vector<std::string>& additions) {
  std::map<std::string, std::string> merged;
  auto add = [&](std::string_view entry) {
    merged.insert_or_assign(std::string(entry.substr(0, entry.find('='))), entry);
  };
  for (char** entry = environ; *entry != nullptr; ++entry) add(*entry);
  for (const std::string& entry : additions) add(entry);
  std::vector<std::string> result;
  result.reserve(merged.size());
  for (auto& [name, entry] : merged) result.push_back(std::move(entry));
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// In the child, between fork and exec: only async-signal-safe calls. Writes errno to `report` if exec fails.
[[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& environment,
                         const ProcessCommand& command, int report, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (command.nice > 0) ::setpriority(PRIO_PROCESS, 0, command.nice);
  for (const int fd : command.inherited_fds) ::fcntl(fd, F_SETFD, 0);
  ::execvpe(arguments[0], arguments.data(), environment.data());
  const int error = errno;
  (void)!::write(report, &error, sizeof(error));
  ::_exit(127);
}

Result<std::unique_ptr<Process>> fork_and_exec(const ProcessCommand& command) {
  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = merged_environment(command.environment);
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) return errno_error("pipe2");
  transport::UniqueFd read_end(report[0]);
  transport::UniqueFd write_end(report[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("fork");
  if (pid == 0) become(argument_pointers, environment_pointers, command, write_end.get(), parent);
  write_end.reset();
  std::unique_ptr<Process> process = std::make_unique<SpawnedProcess>(pid);
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(read_end.get(), &error, sizeof(error));  // ends when exec closes the other side
  } while (count < 0 && errno == EINTR);
  if (count == sizeof(error)) {
    errno = error;
    return errno_error("starting " + command.arguments[0]);
  }
  return process;
}

}  // namespace

std::string Process::end_within(std::chrono::milliseconds time_max) {
  constexpr std::chrono::milliseconds kPoll{5};
  const auto deadline = std::chrono::steady_clock::now() + time_max;
  while (!has_ended() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(kPoll);
  return end();
}

std::string how_it_ended(int status) {
  if (!WIFSIGNALED(status)) return "exited with code " + std::to_string(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const char* name = ::strsignal(number);
  return "was killed by signal " + std::to_string(number) + " (" + (name != nullptr ? name : "unknown") + ")";
}

std::optional<std::string> SpawnedProcess::reap(int options) const {
  int status = 0;
  pid_t reaped = 0;
  do {
    reaped = ::waitpid(pid(), &status, options);
  } while (reaped < 0 && errno == EINTR);
  if (reaped == 0) return std::nullopt;  // it still runs
  return reaped == pid() ? how_it_ended(status) : "was lost";
}

bool SpawnedProcess::has_ended() {
  if (!ending_) ending_ = reap(WNOHANG);
  return ending_.has_value();
}

std::string SpawnedProcess::end() {
  // A child that is on its way out keeps its own story: only one that still runs is killed.
  if (!has_ended()) {
    ::kill(pid(), SIGKILL);
    ending_ = reap(0);
  }
  return *ending_;
}

ProcessSpawner::ProcessSpawner() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

ProcessSpawner::~ProcessSpawner() = default;

Result<std::unique_ptr<Process>> ProcessSpawner::spawn(const ProcessCommand& command) {
  auto answer = std::make_shared<std::promise<Result<std::unique_ptr<Process>>>>();
  auto future = answer->get_future();
  {
    std::lock_guard lock(mutex_);
    orders_.push_back([&command, answer] { answer->set_value(fork_and_exec(command)); });
  }
  changed_.notify_one();
  return future.get();
}

void ProcessSpawner::run(const std::stop_token& stop) {
  while (true) {
    std::vector<std::function<void()>> orders;
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait(lock, stop, [&] { return !orders_.empty(); })) return;
      orders.swap(orders_);
    }
    for (const auto& order : orders) order();
  }
}

}  // namespace sluice::executor
