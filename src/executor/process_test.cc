#include "src/executor/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/transport/unique_fd.h"

namespace sluice::executor {
namespace {

using transport::UniqueFd;

// Runs /bin/sh with its standard output in a file; returns what it wrote when it has ended by itself.
struct Shell {
  ProcessSpawner spawner;
  UniqueFd output{::memfd_create("process_test", MFD_CLOEXEC)};

  ProcessCommand command(const std::string& script) const {
    return {.arguments = {"/bin/sh", "-c", script + " >&" + std::to_string(output.get())},
            .environment = {},
            .inherited_fds = {output.get()}};
  }

  std::string run(const ProcessCommand& command) {
    auto process = spawner.spawn(command);
    REQUIRE(process.ok());
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>((*process)->pid()), &info, WEXITED | WNOWAIT) == 0);
    CHECK((*process)->end() == "exited with code 0");
    std::string text(4096, '\0');
    const ssize_t count = ::pread(output.get(), text.data(), text.size(), 0);
    REQUIRE(count >= 0);
    text.resize(static_cast<std::size_t>(count));
    return text;
  }
};

void wait_until_ended(const Process& process) {
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOWAIT) == 0);
}

TEST_CASE("how a process ended is told, as often as one asks") {
  struct Case {
    const char* script;
    const char* want;
  };
  ProcessSpawner spawner;
  for (const Case& test : {Case{"exit 0", "exited with code 0"}, Case{"exit 3", "exited with code 3"},
                           Case{"kill -SEGV $$", "was killed by signal 11 (Segmentation fault)"},
                           Case{"kill -KILL $$", "was killed by signal 9 (Killed)"}}) {
    INFO(test.script);
    auto process = spawner.spawn({.arguments = {"/bin/sh", "-c", test.script}});
    REQUIRE(process.ok());
    wait_until_ended(**process);
    CHECK((*process)->has_ended());
    CHECK((*process)->end() == test.want);
    CHECK((*process)->end() == test.want);
    CHECK((*process)->has_ended());
  }
}

TEST_CASE("ending a process that runs kills it, and its destruction leaves no zombie") {
  ProcessSpawner spawner;
  auto process = spawner.spawn({.arguments = {"/bin/sleep", "3600"}});
  REQUIRE(process.ok());
  CHECK(!(*process)->has_ended());
  const pid_t pid = (*process)->pid();
  SECTION("told to") { CHECK((*process)->end() == "was killed by signal 9 (Killed)"); }
  SECTION("by destruction") { process->reset(); }
  CHECK(::waitpid(pid, nullptr, WNOHANG) == -1);
  CHECK(::kill(pid, 0) == -1);
}

TEST_CASE("a program that cannot be started is an error with its name, and leaves nothing behind") {
  ProcessSpawner spawner;
  struct Case {
    const char* program;
    ErrorCode want;
  };
  for (const Case& test :
       {Case{"/no/such/program", ErrorCode::kNotFound}, Case{"no-such-program-on-the-path", ErrorCode::kNotFound},
        Case{"/etc", ErrorCode::kPermissionDenied}}) {
    INFO(test.program);
    const auto process = spawner.spawn({.arguments = {test.program}});
    REQUIRE(!process.ok());
    CHECK(process.error().code() == test.want);
    CHECK_THAT(std::string(process.error().message()), Catch::Contains(test.program));
  }
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("the environment is ours, with additions and replacements") {
  Shell shell;
  ::setenv("SLUICE_PROCESS_TEST_KEPT", "kept", 1);
  ::setenv("SLUICE_PROCESS_TEST_REPLACED", "old", 1);
  ProcessCommand command =
      shell.command("echo $SLUICE_PROCESS_TEST_KEPT $SLUICE_PROCESS_TEST_REPLACED $SLUICE_PROCESS_TEST_NEW");
  command.environment = {"SLUICE_PROCESS_TEST_REPLACED=new", "SLUICE_PROCESS_TEST_NEW=a=b"};
  CHECK(shell.run(command) == "kept new a=b\n");
}

TEST_CASE("a child has the descriptors that it was given, and no others of ours") {
  Shell shell;
  const UniqueFd given(::memfd_create("given", MFD_CLOEXEC)), kept(::memfd_create("kept", MFD_CLOEXEC));
  ProcessCommand command = shell.command("for fd in " + std::to_string(given.get()) + " " + std::to_string(kept.get()) +
                                         "; do [ -e /proc/self/fd/$fd ] && echo yes || echo no; done");
  command.arguments[2] = "{ " + command.arguments[2].substr(0, command.arguments[2].rfind(" >&")) + "; } >&" +
                         std::to_string(shell.output.get());
  command.inherited_fds.push_back(given.get());
  CHECK(shell.run(command) == "yes\nno\n");
}

TEST_CASE("a child starts with ordinary signals, whatever we block or ignore") {
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  {
    ProcessSpawner spawner;  // its thread inherits the mask
    auto process = spawner.spawn({.arguments = {"/bin/sleep", "3600"}});
    REQUIRE(process.ok());
    ::kill((*process)->pid(), SIGTERM);
    wait_until_ended(**process);
    CHECK((*process)->end() == "was killed by signal 15 (Terminated)");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("a child may be nicer than we are") {
  Shell shell;
  ProcessCommand command = shell.command("nice");
  const int ours = std::stoi(shell.run(command));
  REQUIRE(::ftruncate(shell.output.get(), 0) == 0);
  command.nice = std::min(19, ours + 1);
  Shell other;
  command.arguments[2] = "nice >&" + std::to_string(other.output.get());
  command.inherited_fds = {other.output.get()};
  CHECK(std::stoi(other.run(command)) == command.nice);
}

TEST_CASE("children outlive the thread that asked for them, not the spawner") {
  auto spawner = std::make_unique<ProcessSpawner>();
  std::unique_ptr<Process> process;
  std::jthread([&] { process = std::move(spawner->spawn({.arguments = {"/bin/sleep", "3600"}})).value(); }).join();
  CHECK(!process->has_ended());
  spawner.reset();  // the kernel ends them with the thread that forked them
  wait_until_ended(*process);
  CHECK(process->end() == "was killed by signal 9 (Killed)");
}

TEST_CASE("many threads may spawn at once", "[threads]") {
  ProcessSpawner spawner;
  std::vector<std::string> endings(12);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < endings.size(); ++i) {
      threads.emplace_back([&, i] {
        auto process = spawner.spawn({.arguments = {"/bin/sh", "-c", "exit " + std::to_string(i)}});
        if (!process.ok()) return;
        siginfo_t info{};
        ::waitid(P_PID, static_cast<id_t>((*process)->pid()), &info, WEXITED | WNOWAIT);
        endings[i] = (*process)->end();
      });
    }
  }
  for (std::size_t i = 0; i < endings.size(); ++i) CHECK(endings[i] == "exited with code " + std::to_string(i));
}

}  // namespace
}  // namespace sluice::executor
