#include "src/executor/cgroup.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::executor {
namespace {

namespace fs = std::filesystem;

// Above this a version 1 memory limit means "none" (the kernel writes the largest page-aligned number).
constexpr std::size_t kNoMemoryLimit = std::size_t{1} << 60;

std::optional<std::string> first_word(const fs::path& file) {
  std::ifstream in(file);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  return word;
}

std::optional<double> number_in(const fs::path& file) {
  const auto word = first_word(file);
  if (!word) return std::nullopt;
  try {
    return std::stod(*word);
  } catch (const std::exception&) {
    return std::nullopt;  // "max"
  }
}

// Of a file with a name and a number in each line.
std::optional<double> named_number_in(const fs::path& file, std::string_view wanted) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    double number = 0;
    if (words >> name >> number && name == wanted) return number;
  }
  return std::nullopt;
}

// The directories whose limits apply: the process's own cgroup of `controller` and all above it. `controller` is empty
// for version 2.
std::vector<fs::path> cgroup_directories(const fs::path& root, const std::string& controller) {
  const fs::path base = root / "sys/fs/cgroup" / controller;
  fs::path own = "/";
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::istringstream names(line.substr(first + 1, second - first - 1));
    bool matches = controller.empty() && second == first + 1;
    for (std::string name; std::getline(names, name, ',');)
      matches = matches || (!controller.empty() && name == controller);
    if (matches) own = line.substr(second + 1);
  }
  std::vector<fs::path> directories;
  for (fs::path path = own.lexically_normal();; path = path.parent_path()) {
    directories.push_back(base / path.relative_path());
    if (path == path.parent_path()) return directories;
  }
}

template <typename Limit>
std::optional<double> tightest(const std::vector<fs::path>& directories, Limit limit) {
  std::optional<double> least;
  for (const fs::path& directory : directories) {
    const std::optional<double> value = limit(directory);
    if (value && (!least || *value < *least)) least = value;
  }
  return least;
}

std::optional<double> quota_v2(const fs::path& directory) {
  std::ifstream in(directory / "cpu.max");
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  std::istringstream number(quota);
  double value = 0;
  if (!(number >> value)) return std::nullopt;
  return value / period;
}

std::optional<double> quota_v1(const fs::path& directory) {
  const auto quota = number_in(directory / "cpu.cfs_quota_us");
  const auto period = number_in(directory / "cpu.cfs_period_us");
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

}  // namespace

std::optional<double> cpu_quota_cores(const fs::path& root) {
  if (const auto quota = tightest(cgroup_directories(root, ""), quota_v2)) return quota;
  if (const auto quota = tightest(cgroup_directories(root, "cpu"), quota_v1)) return quota;
  return tightest(cgroup_directories(root, "cpu,cpuacct"), quota_v1);
}

std::optional<std::size_t> memory_limit_bytes(const fs::path& root) {
  auto limit = tightest(cgroup_directories(root, ""), [](const fs::path& d) { return number_in(d / "memory.max"); });
  if (!limit) {
    limit = tightest(cgroup_directories(root, "memory"),
                     [](const fs::path& d) { return number_in(d / "memory.limit_in_bytes"); });
  }
  if (!limit || *limit <= 0 || *limit >= static_cast<double>(kNoMemoryLimit)) return std::nullopt;
  return static_cast<std::size_t>(*limit);
}

std::optional<std::size_t> memory_in_use_bytes(const fs::path& root) {
  constexpr struct {
    const char* controller;
    const char* usage;
    const char* inactive_file;
  } kVersions[] = {{"", "memory.current", "inactive_file"}, {"memory", "memory.usage_in_bytes", "total_inactive_file"}};
  for (const auto& version : kVersions) {
    for (const fs::path& directory : cgroup_directories(root, version.controller)) {
      const auto usage = number_in(directory / version.usage);
      const auto inactive_file = named_number_in(directory / "memory.stat", version.inactive_file);
      if (!usage || !inactive_file) continue;  // the host's path, which a container does not see
      return static_cast<std::size_t>(std::max(0.0, *usage - *inactive_file));
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> memory_available_bytes(const fs::path& root) {
  std::optional<std::size_t> available;
  if (const auto kilobytes = named_number_in(root / "proc/meminfo", "MemAvailable:"))
    available = static_cast<std::size_t>(*kilobytes) << 10;
  const auto limit = memory_limit_bytes(root);
  const auto in_use = memory_in_use_bytes(root);
  if (!limit || !in_use) return available;
  const std::size_t own = *limit - std::min(*limit, *in_use);
  return available ? std::min(*available, own) : own;
}

std::optional<std::size_t> out_of_memory_kills(const fs::path& root) {
  constexpr struct {
    const char* controller;
    const char* file;
  } kVersions[] = {{"", "memory.events"}, {"memory", "memory.oom_control"}};
  for (const auto& version : kVersions)
    for (const fs::path& directory : cgroup_directories(root, version.controller))
      if (const auto kills = named_number_in(directory / version.file, "oom_kill"))
        return static_cast<std::size_t>(std::max(0.0, *kills));
  return std::nullopt;
}

std::size_t cpus_allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
}

std::size_t threads_for(std::optional<double> quota_cores, std::size_t cpus) {
  if (!quota_cores) return cpus;
  const auto rounded = static_cast<std::size_t>(std::ceil(std::max(*quota_cores, 0.0) - 0.01));
  return std::clamp<std::size_t>(rounded, 1, cpus);
}

}  // namespace sluice::executor
