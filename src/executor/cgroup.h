// How many threads this process should run: the CPU that its cgroup and its affinity mask allow.
//
// A container's quota is cpu.max in its own (version 2) or cpu.cfs_quota_us / cpu.cfs_period_us (version 1) directory,
// and a parent may be tighter. Inside a container the cgroup file system usually shows the container's own directory
// as its root; outside, the path in /proc/self/cgroup is followed upwards. An in-place pod resize changes the numbers
// while we run: ask again every few seconds.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace sluice::executor {

// Reads below `root`: "/" except in tests, which lay out proc/self/cgroup and sys/fs/cgroup in a directory.
// The tightest limit in cores (0.25 for 250m), nullopt if there is none or nothing can be read.
std::optional<double> cpu_quota_cores(const std::filesystem::path& root = "/");
std::optional<std::size_t> memory_limit_bytes(const std::filesystem::path& root = "/");

// CPUs in the affinity mask, at least 1.
std::size_t cpus_allowed();

// At least 1: a quota of 250m runs one thread; 1.5 cores run two.
std::size_t threads_for(std::optional<double> quota_cores, std::size_t cpus);

}  // namespace sluice::executor
