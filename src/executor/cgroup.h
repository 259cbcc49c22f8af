// What this process's cgroup allows and uses: CPU, which says how many threads to run, and memory.
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

// The working set of the process's own cgroup, as the kubelet counts it: memory in use less file pages that the kernel
// can take back at once. In a container that is all of its processes. nullopt if it cannot be read.
std::optional<std::size_t> memory_in_use_bytes(const std::filesystem::path& root = "/");

// How much more memory this process could use, by its cgroup and by the whole machine, without others being pushed out;
// what file pages can be given back counts as free. nullopt if neither can be read.
std::optional<std::size_t> memory_available_bytes(const std::filesystem::path& root = "/");

// How many processes of its own cgroup the kernel has killed for want of memory. It may kill one and let the others of
// a container live. nullopt if it cannot be read.
std::optional<std::size_t> out_of_memory_kills(const std::filesystem::path& root = "/");

// CPUs in the affinity mask, at least 1.
std::size_t cpus_allowed();

// At least 1: a quota of 250m runs one thread; 1.5 cores run two.
std::size_t threads_for(std::optional<double> quota_cores, std::size_t cpus);

}  // namespace sluice::executor
