#include "src/executor/cgroup.h"

#include <map>
#include <string>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::executor {
namespace {

namespace fs = std::filesystem;

struct Tree : testing::TemporaryDirectory {
  explicit Tree(const std::map<std::string, std::string>& files) {
    for (const auto& [name, content] : files) file(name, content);
  }
};

TEST_CASE("the CPU quota is found in both versions of cgroups") {
  struct Case {
    const char* name;
    std::map<std::string, std::string> files;
    std::optional<double> want;
  };
  const Case cases[] = {
      {"nothing readable", {}, std::nullopt},
      {"version 2, in a container",
       {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "25000 100000\n"}},
       0.25},
      {"version 2, no limit",
       {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "max 100000\n"}},
       std::nullopt},
      {"version 2, the parent is tighter",
       {{"proc/self/cgroup", "0::/pod/app\n"},
        {"sys/fs/cgroup/pod/cpu.max", "50000 100000\n"},
        {"sys/fs/cgroup/pod/app/cpu.max", "200000 100000\n"}},
       0.5},
      {"version 1, in a container",
       {{"proc/self/cgroup", "1:cpu:/\n0::/\n"},
        {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n"},
        {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
       1.5},
      {"version 1, no limit",
       {{"proc/self/cgroup", "1:cpu:/\n"},
        {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
        {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}},
       std::nullopt},
      {"version 1, controllers mounted together, own path",
       {{"proc/self/cgroup", "3:cpu,cpuacct:/kubepods/pod1\n"},
        {"sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_quota_us", "10000\n"},
        {"sys/fs/cgroup/cpu/kubepods/pod1/cpu.cfs_period_us", "100000\n"}},
       0.1},
      {"the path of the host is not visible in the container",
       {{"proc/self/cgroup", "0::/kubepods/pod1/abc\n"}, {"sys/fs/cgroup/cpu.max", "300000 100000\n"}},
       3.0},
      {"damaged file", {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "many\n"}}, std::nullopt},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    const Tree tree(test.files);
    const auto quota = cpu_quota_cores(tree.path);
    REQUIRE(quota.has_value() == test.want.has_value());
    if (quota) CHECK(*quota == Approx(*test.want));
  }
}

TEST_CASE("a memory limit counts only if it limits") {
  const Tree v2({{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/memory.max", "268435456\n"}});
  CHECK(memory_limit_bytes(v2.path) == std::size_t{268435456});
  const Tree v1(
      {{"proc/self/cgroup", "4:memory:/\n"}, {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}});
  CHECK(!memory_limit_bytes(v1.path).has_value());
}

TEST_CASE("the working set is what is in use, without file pages that can go at once") {
  struct Case {
    const char* name;
    std::map<std::string, std::string> files;
    std::optional<std::size_t> want;
  };
  const Case cases[] = {
      {"nothing readable", {}, std::nullopt},
      {"version 2",
       {{"proc/self/cgroup", "0::/\n"},
        {"sys/fs/cgroup/memory.current", "5000\n"},
        {"sys/fs/cgroup/memory.stat", "anon 3000\nfile 2000\ninactive_file 1500\nactive_file 500\n"}},
       3500},
      {"version 2, its own directory, not its parent's",
       {{"proc/self/cgroup", "0::/pod/app\n"},
        {"sys/fs/cgroup/pod/memory.current", "9000\n"},
        {"sys/fs/cgroup/pod/memory.stat", "inactive_file 0\n"},
        {"sys/fs/cgroup/pod/app/memory.current", "5000\n"},
        {"sys/fs/cgroup/pod/app/memory.stat", "inactive_file 1000\n"}},
       4000},
      {"version 1, where the host's path is not visible",
       {{"proc/self/cgroup", "4:memory:/kubepods/pod1/abc\n0::/\n"},
        {"sys/fs/cgroup/memory/memory.usage_in_bytes", "7000\n"},
        {"sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n"}},
       5000},
      {"more that can go than is in use, as the two are read one after the other",
       {{"proc/self/cgroup", "0::/\n"},
        {"sys/fs/cgroup/memory.current", "1000\n"},
        {"sys/fs/cgroup/memory.stat", "inactive_file 1500\n"}},
       0},
      {"half of it readable",
       {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/memory.current", "1000\n"}},
       std::nullopt},
      {"damaged",
       {{"proc/self/cgroup", "0::/\n"},
        {"sys/fs/cgroup/memory.current", "much\n"},
        {"sys/fs/cgroup/memory.stat", "inactive_file 1500\n"}},
       std::nullopt},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    CHECK(memory_in_use_bytes(Tree(test.files).path) == test.want);
  }
}

TEST_CASE("memory is available as far as the machine and the cgroup both have some left") {
  struct Case {
    const char* name;
    std::map<std::string, std::string> files;
    std::optional<std::size_t> want;
  };
  const std::pair<const std::string, std::string> machine{"proc/meminfo",
                                                          "MemTotal:  9000 kB\nMemAvailable:    4000 kB\n"};
  const std::pair<const std::string, std::string> own{"proc/self/cgroup", "0::/\n"};
  const std::pair<const std::string, std::string> stat{"sys/fs/cgroup/memory.stat", "inactive_file 0\n"};
  const Case cases[] = {
      {"nothing readable", {}, std::nullopt},
      {"no limit", {machine, own}, 4000 << 10},
      {"a limit",
       {machine, own, stat, {"sys/fs/cgroup/memory.max", "9000\n"}, {"sys/fs/cgroup/memory.current", "2000\n"}},
       7000},
      {"a limit beyond what the machine has",
       {machine, own, stat, {"sys/fs/cgroup/memory.max", "90000000\n"}, {"sys/fs/cgroup/memory.current", "1\n"}},
       4000 << 10},
      {"more in use than the limit",
       {own, stat, {"sys/fs/cgroup/memory.max", "1000\n"}, {"sys/fs/cgroup/memory.current", "2000\n"}},
       0},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    CHECK(memory_available_bytes(Tree(test.files).path) == test.want);
  }
}

TEST_CASE("processes that were killed for want of memory are counted in both versions of cgroups") {
  struct Case {
    const char* name;
    std::map<std::string, std::string> files;
    std::optional<std::size_t> want;
  };
  const Case cases[] = {
      {"nothing readable", {}, std::nullopt},
      {"version 2",
       {{"proc/self/cgroup", "0::/\n"},
        {"sys/fs/cgroup/memory.events", "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n"}},
       3},
      {"version 2, its own directory, not its parent's",
       {{"proc/self/cgroup", "0::/pod/app\n"},
        {"sys/fs/cgroup/pod/memory.events", "oom_kill 5\n"},
        {"sys/fs/cgroup/pod/app/memory.events", "oom_kill 0\n"}},
       0},
      {"version 1, where the host's path is not visible",
       {{"proc/self/cgroup", "4:memory:/kubepods/pod1/abc\n0::/\n"},
        {"sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"}},
       2},
      {"a kernel that does not count them",
       {{"proc/self/cgroup", "4:memory:/\n"},
        {"sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n"}},
       std::nullopt},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    CHECK(out_of_memory_kills(Tree(test.files).path) == test.want);
  }
}

TEST_CASE("threads follow the quota, within the affinity mask") {
  CHECK(threads_for(std::nullopt, 8) == 8);
  CHECK(threads_for(0.25, 8) == 1);
  CHECK(threads_for(1.0, 8) == 1);
  CHECK(threads_for(1.5, 8) == 2);
  CHECK(threads_for(64, 8) == 8);
  CHECK(threads_for(0, 8) == 1);
  CHECK(cpus_allowed() >= 1);
}

}  // namespace
}  // namespace sluice::executor
