#include "scheduler/simulator/policies/host_tenants.h"

#include <algorithm>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

Job on(const std::string& name, const std::vector<std::string>& nodes) {
  Job job{.id = {"default", name}, .running = true};
  job.local_adjustable = true;
  for (const std::string& node : nodes) job.hosts.push_back({.node = node, .gpus = 1});
  return job;
}

// "node: job/host job/host", a line for each node.
std::string tenants_of(const std::vector<Job>& jobs) {
  const std::vector<Node> nodes{{.name = "g0"}, {.name = "g1"}};
  const ClusterSnapshot snapshot{.nodes = nodes, .jobs = jobs};
  std::string text;
  for (const auto& [node, tenants] : tenants_by_node(snapshot, NodeIndex(nodes))) {
    text += node + ':';
    for (const Tenant& tenant : tenants)
      text += ' ' + snapshot.jobs[tenant.job].id.name + '/' + std::to_string(tenant.host);
    text += '\n';
  }
  return text;
}

TEST_CASE("the jobs that share a host, by situation") {
  Job suspended = on("b", {"g0"});
  suspended.running = false;
  Job fixed = on("b", {"g0"});
  fixed.local_adjustable = false;
  struct Row {
    const char* situation;
    std::vector<Job> jobs;
    const char* want;
  };
  const Row rows[] = {
      {"no job", {}, ""},
      {"two on one host", {on("a", {"g0"}), on("b", {"g0"})}, "g0: a/0 b/0\n"},
      {"each on its own", {on("a", {"g1"}), on("b", {"g0"})}, "g0: b/0\ng1: a/0\n"},
      {"a gang on both, the other beside its second half",
       {on("a", {"g0", "g1"}), on("b", {"g1"})},
       "g0: a/0\ng1: a/1 b/0\n"},
      {"two pods of one job on one host", {on("a", {"g0", "g0"})}, "g0: a/0 a/1\n"},
      {"a trainer that does not run has left its part to the other", {on("a", {"g0"}), suspended}, "g0: a/0\n"},
      {"feeders of fixed CPU are not divided", {on("a", {"g0"}), fixed}, "g0: a/0\n"},
      {"a host that the snapshot does not know, and one that is not known", {on("a", {"g7", "", "g1"})}, "g1: a/2\n"},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(tenants_of(row.jobs) == row.want);
    // In order of job id, however the snapshot has them.
    std::vector<Job> backward(row.jobs.rbegin(), row.jobs.rend());
    CHECK(tenants_of(backward) == row.want);
  }
}

}  // namespace
}  // namespace sluice::scheduler
