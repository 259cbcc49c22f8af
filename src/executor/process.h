// Child processes that cannot outlive us.
//
// PR_SET_PDEATHSIG fires when the *thread* that forked ends, not the process. So one thread forks all children, and
// lives as long as the ProcessSpawner. Keep the spawner until its children are gone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/result.h"

namespace sluice::executor {

struct ProcessCommand {
  std::vector<std::string> arguments;    // [0] is the program, found along PATH if it has no slash
  std::vector<std::string> environment;  // NAME=value, added to our own or replacing it there
  std::vector<int> inherited_fds;        // keep their numbers; every other descriptor is closed by CLOEXEC
  int nice = 0;                          // how much lower its priority is than this process's
};

// A process that must not outlive this one. Destroying it kills it (SIGKILL). Thread safety: none.
class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid) {}
  virtual ~Process() = default;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }

  // Whether it has ended by itself; never waits.
  virtual bool has_ended() = 0;

  // Kills it if it still runs, and says how it ended, as in how_it_ended(). May be called repeatedly.
  virtual std::string end() = 0;

  // The same, but a process that is about to end by itself gets so long to do so.
  std::string end_within(std::chrono::milliseconds time_max);

 private:
  const pid_t pid_;
};

// "was killed by signal 11 (Segmentation fault)" or "exited with code 3". `status`: from waitpid.
std::string how_it_ended(int status);

// A child of this process: its end also reaps it.
class SpawnedProcess final : public Process {
 public:
  using Process::Process;
  ~SpawnedProcess() override { SpawnedProcess::end(); }

  bool has_ended() override;
  std::string end() override;

 private:
  // How it ended; nullopt if it runs. `options` of waitpid.
  std::optional<std::string> reap(int options) const;

  std::optional<std::string> ending_;
};

// Thread safety: spawn() may be called from any thread.
class ProcessSpawner {
 public:
  ProcessSpawner();
  ~ProcessSpawner();

  // Returns once the program runs. Errors: NotFound, PermissionDenied, ... with the program's name.
  Result<std::unique_ptr<Process>> spawn(const ProcessCommand& command);

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::function<void()>> orders_;
  std::jthread thread_;
};

}  // namespace sluice::executor
