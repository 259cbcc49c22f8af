// What another process, or this thread, has done with its time so far.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>

namespace sluice::executor {

struct ProcessTimes {
  std::chrono::steady_clock::time_point now;
  double busy_seconds = 0;    // CPU, of all its threads
  double queued_seconds = 0;  // its first thread has waited for a CPU

  // Between two looks: neither running nor waiting for a CPU.
  double blocked_seconds_since(const ProcessTimes& before) const;
};

// nullopt if the process has gone, or the kernel does not count; or if its first thread runs or waits for a CPU just
// now: for how long it waits already, the kernel tells when it runs again. `root`: "/" except in tests.
std::optional<ProcessTimes> process_times(pid_t pid, const std::filesystem::path& root = "/");

// For how long the calling thread has waited for a CPU so far. nullopt if the kernel does not count.
std::optional<double> own_queued_seconds();

// Memory that is the process's alone: what would come back if it ended. nullopt as above.
std::optional<std::size_t> private_bytes(pid_t pid, const std::filesystem::path& root = "/");

}  // namespace sluice::executor
