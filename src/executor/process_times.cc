#include "src/executor/process_times.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>

namespace sluice::executor {
namespace {

// We wait for a CPU ourselves: a look that takes longer says little of one moment.
constexpr std::chrono::milliseconds kLookTimeMax{2};

std::filesystem::path folder_of(pid_t pid, const std::filesystem::path& root) {
  return root / "proc" / std::to_string(pid);
}

// "R": it runs or waits for a CPU. The field follows the name of the program, which may contain anything.
std::optional<char> state_of(const std::filesystem::path& folder) {
  std::ifstream file(folder / "stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end_of_name = line.rfind(')');
  if (end_of_name == std::string::npos || end_of_name + 2 >= line.size()) return std::nullopt;
  return line[end_of_name + 2];
}

std::optional<double> queued_seconds_in(const std::filesystem::path& schedstat) {
  std::ifstream file(schedstat);
  double running_nanoseconds = 0, queued_nanoseconds = 0, turns = 0;
  // What runs has had a turn, unless the kernel does not count.
  if (!(file >> running_nanoseconds >> queued_nanoseconds >> turns) || turns <= 0) return std::nullopt;
  return queued_nanoseconds / 1e9;
}

}  // namespace

double ProcessTimes::blocked_seconds_since(const ProcessTimes& before) const {
  const double wall_seconds = std::chrono::duration<double>(now - before.now).count();
  return std::max(0.0, wall_seconds - (busy_seconds - before.busy_seconds) - (queued_seconds - before.queued_seconds));
}

std::optional<ProcessTimes> process_times(pid_t pid, const std::filesystem::path& root) {
  const auto begun = std::chrono::steady_clock::now();
  if (const auto state = state_of(folder_of(pid, root)); !state || *state == 'R') return std::nullopt;
  clockid_t clock{};
  timespec busy{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &busy) != 0) return std::nullopt;
  const auto queued_seconds = queued_seconds_in(folder_of(pid, root) / "schedstat");
  if (!queued_seconds) return std::nullopt;
  const auto now = std::chrono::steady_clock::now();
  if (now - begun > kLookTimeMax) return std::nullopt;
  return ProcessTimes{now, static_cast<double>(busy.tv_sec) + static_cast<double>(busy.tv_nsec) / 1e9, *queued_seconds};
}

std::optional<double> own_queued_seconds() { return queued_seconds_in("/proc/thread-self/schedstat"); }

std::optional<std::size_t> private_bytes(pid_t pid, const std::filesystem::path& root) {
  std::ifstream file(folder_of(pid, root) / "smaps_rollup");
  std::optional<std::size_t> bytes;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Private_Clean:") && !line.starts_with("Private_Dirty:")) continue;
    bytes = bytes.value_or(0) + 1024 * std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
  }
  return bytes;
}

}  // namespace sluice::executor
