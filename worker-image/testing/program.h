// Starts the built programs as a test's child processes.
#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <stdexcept>
#include <string>
#include <vector>

extern char** environ;

namespace sluice::testing {

class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    if (::posix_spawn(&pid_, pointers[0], nullptr, nullptr, pointers.data(), environ) != 0)
      throw std::runtime_error("cannot start " + arguments[0]);
  }
  ~Program() {
    if (pid_ > 0) kill_hard();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) { ::kill(pid_, number); }
  void kill_hard() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  // Its exit code, or 128 + the signal that ended it.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace sluice::testing
