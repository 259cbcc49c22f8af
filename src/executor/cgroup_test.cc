#include "src/executor/cgroup.h"

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "src/base/testing/catch.h"

namespace sluice::executor {
namespace {

namespace fs = std::filesystem;

struct Tree {
  fs::path root;
  explicit Tree(const std::map<std::string, std::string>& files) {
    std::string pattern = (fs::temp_directory_path() / "cgroup_test.XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    root = pattern;
    for (const auto& [name, content] : files) {
      fs::create_directories((root / name).parent_path());
      std::ofstream(root / name) << content;
    }
  }
  ~Tree() { fs::remove_all(root); }
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
    const auto quota = cpu_quota_cores(tree.root);
    REQUIRE(quota.has_value() == test.want.has_value());
    if (quota) CHECK(*quota == Approx(*test.want));
  }
}

TEST_CASE("a memory limit counts only if it limits") {
  const Tree v2({{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/memory.max", "268435456\n"}});
  CHECK(memory_limit_bytes(v2.root) == std::size_t{268435456});
  const Tree v1(
      {{"proc/self/cgroup", "4:memory:/\n"}, {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}});
  CHECK(!memory_limit_bytes(v1.root).has_value());
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
