#include "scheduler/admission.h"

#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

using Nodes = std::vector<std::string>;

Job waits(const std::string& name, int ranks, int gpus_per_rank, double waited_seconds) {
  Job job = MakeJob(name).not_running().obj();
  job.hosts.clear();
  job.ranks = ranks;
  job.gpus = ranks * gpus_per_rank;
  job.waiting = Waiting{kNowSeconds - waited_seconds, gpus_per_rank, 1000, false};
  return job;
}

Node host(const std::string& name, int gpus, int in_use) {
  return {.name = name, .allocatable_millicores = 48'000, .gpus = gpus, .gpus_in_use = in_use};
}

struct Case {
  std::vector<Node> nodes;
  std::vector<Job> jobs;
  Config config;

  std::map<JobId, Admission> admitted() const {
    const ClusterSnapshot snapshot{kNowSeconds, nodes, jobs, {}, {}};
    NodeTable table(snapshot.nodes, 1000);
    return admit(snapshot, table, config);
  }
  Nodes nodes_of(const std::string& name) const {
    const auto all = admitted();
    const auto found = all.find({"default", name});
    return found == all.end() ? Nodes{} : found->second.nodes;
  }
};

TEST_CASE("a gang goes to the fullest host that still holds all of it") {
  const Case c{{host("empty", 8, 0), host("fuller", 8, 4), host("full", 8, 6)}, {waits("a", 1, 4, 0)}, {}};
  CHECK(c.nodes_of("a") == Nodes{"fuller"});
}

TEST_CASE("a gang that no host holds is spread over as few as possible, or not started at all") {
  Case c{{host("h1", 8, 0), host("h2", 8, 6), host("h3", 8, 2)}, {waits("a", 3, 4, 0)}, {}};
  CHECK(c.nodes_of("a") == Nodes{"h1", "h1", "h3"});
  c.jobs = {waits("a", 4, 4, 0)};
  CHECK(c.nodes_of("a").empty());
}

TEST_CASE("first come, first served; what fits passes what does not") {
  const Case c{{host("h1", 8, 4)}, {waits("late", 1, 4, 10), waits("early", 1, 4, 100), waits("huge", 1, 8, 1000)}, {}};
  CHECK(c.nodes_of("early") == Nodes{"h1"});
  CHECK(c.nodes_of("late").empty());
  CHECK(c.nodes_of("huge").empty());
}

TEST_CASE("who has waited too long is not overtaken any more") {
  Case c{{host("h1", 8, 4)}, {waits("huge", 1, 8, 20'000), waits("small", 1, 1, 10)}, {}};
  CHECK(c.nodes_of("small").empty());
  c.nodes = {host("h1", 8, 0)};
  CHECK(c.nodes_of("huge") == Nodes{"h1"});
}

TEST_CASE("the shortest first, but waiting ages") {
  Case c{{host("h1", 8, 4)}, {waits("long", 1, 4, 0), waits("short", 1, 4, 0)}, {.admit = Admit::kShortestFirst}};
  c.jobs[0].remaining_seconds = 7200;
  c.jobs[1].remaining_seconds = 3600;
  CHECK(c.nodes_of("short") == Nodes{"h1"});
  c.jobs[0].waiting->since_seconds = kNowSeconds - 6000;
  CHECK(c.nodes_of("long") == Nodes{"h1"});
  c.jobs[0].waiting->since_seconds = kNowSeconds;
  c.jobs[1].remaining_seconds.reset();  // like the mean of the others: no better than them
  CHECK(c.admitted().size() == 1);
}

TEST_CASE("priority comes before arrival") {
  Case c{{host("h1", 8, 4)}, {waits("early", 1, 4, 100), waits("urgent", 1, 4, 0)}, {}};
  c.jobs[1].priority = 1;
  CHECK(c.nodes_of("urgent") == Nodes{"h1"});
}

TEST_CASE("what Kueue admits is left to it, and a cordoned host starts nothing") {
  Case c{{host("h1", 8, 0)}, {waits("a", 1, 1, 0)}, {}};
  c.jobs[0].waiting->admitted_elsewhere = true;
  CHECK(c.admitted().empty());
  c.jobs[0].waiting->admitted_elsewhere = false;
  c.nodes[0].schedulable = false;
  CHECK(c.admitted().empty());
}

TEST_CASE("GPUs of a quota") {
  const Job running = [] {
    Job job = MakeJob("running").gpus(2).obj();
    job.quota = "team";
    return job;
  }();
  Job a = waits("a", 1, 2, 100), b = waits("b", 1, 1, 0);
  a.quota = b.quota = "team";
  ClusterSnapshot snapshot{kNowSeconds, {host("h1", 8, 2)}, {running, a, b}, {{"team", {}, 3}}, {}};
  NodeTable nodes(snapshot.nodes, 1000);
  const auto admitted = admit(snapshot, nodes, {});
  CHECK(admitted.size() == 1);
  CHECK(admitted.contains(b.id));
}

TEST_CASE("data workers never keep a trainer from starting: they make way in the same decision") {
  const FluidJob hungry{.demand = 80'000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  ClusterSnapshot snapshot = MakeSnapshot().job(MakeJob("vision").holds(8, "h1").measures(hungry)).obj();
  snapshot.nodes = {host("h1", 8, 0)};
  snapshot.nodes[0].allocatable_millicores = 10'000;
  Job trainer = waits("speech", 4, 1, 0);
  trainer.waiting->millicores_per_rank = 2000;
  snapshot.jobs.push_back(trainer);
  const Plan plan = decide(snapshot, {});
  CHECK(plan_of(plan, "speech").admission.nodes == Nodes{"h1", "h1", "h1", "h1"});
  CHECK(plan_of(plan, "speech").explanation == "Starts now on h1.");
  CHECK(plan_of(plan, "vision").workers == 2);
  CHECK(plan_of(plan, "vision").victims.size() == 6);
}

TEST_CASE("the guarded part of a host stays free of data workers") {
  const FluidJob hungry{.demand = 80'000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  ClusterSnapshot snapshot = MakeSnapshot().job(MakeJob("vision").measures(hungry)).obj();
  snapshot.nodes = {host("h1", 8, 0)};
  snapshot.nodes[0].guarded_millicores = 40'000;
  CHECK(decide(snapshot, {}).jobs[0].workers == 8);
}

}  // namespace
}  // namespace sluice::scheduler::testing
