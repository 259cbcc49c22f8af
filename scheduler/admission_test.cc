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

TEST_CASE("GPUs of a quota are used up by those that start in the same decision") {
  Job a = waits("a", 1, 2, 100), b = waits("b", 1, 2, 50), other = waits("other", 1, 2, 0);
  a.quota = b.quota = "team";
  ClusterSnapshot snapshot{kNowSeconds, {host("h1", 8, 0)}, {a, b, other}, {{"team", {}, 3}}, {}};
  NodeTable nodes(snapshot.nodes, 1000);
  const auto admitted = admit(snapshot, nodes, {});
  CHECK(admitted.contains(a.id));
  CHECK_FALSE(admitted.contains(b.id));
  CHECK(admitted.contains(other.id));
}

TEST_CASE("each team has its own quota of GPUs") {
  Job a = waits("a", 1, 2, 100), b = waits("b", 1, 2, 50);
  a.quota = "red";
  b.quota = "blue";
  ClusterSnapshot snapshot{kNowSeconds, {host("h1", 8, 0)}, {a, b}, {{"red", {}, 1}, {"blue", {}, 2}}, {}};
  NodeTable nodes(snapshot.nodes, 1000);
  const auto admitted = admit(snapshot, nodes, {});
  CHECK_FALSE(admitted.contains(a.id));
  CHECK(admitted.contains(b.id));
}

TEST_CASE("a quota without a number of GPUs, or one that nobody has defined, bounds nothing") {
  Job a = waits("a", 1, 8, 0);
  a.quota = "team";
  for (const std::vector<Quota>& quotas : {std::vector<Quota>{{"team", 1000, {}}}, std::vector<Quota>{}}) {
    ClusterSnapshot snapshot{kNowSeconds, {host("h1", 8, 0)}, {a}, quotas, {}};
    NodeTable nodes(snapshot.nodes, 1000);
    CHECK(admit(snapshot, nodes, {}).size() == 1);
  }
}

TEST_CASE("arrival decides, not the name") {
  const Case c{{host("h1", 8, 4)}, {waits("a", 1, 4, 10), waits("z", 1, 4, 11)}, {}};
  CHECK(c.nodes_of("z") == Nodes{"h1"});
  CHECK(c.nodes_of("a").empty());
}

TEST_CASE("on which hosts a gang starts") {
  const auto with_cpu = [](Node node, std::int64_t free_millicores) {
    node.requested_by_others_millicores = node.allocatable_millicores - free_millicores;
    return node;
  };
  const auto cordoned = [](Node node) {
    node.schedulable = false;
    return node;
  };
  const auto small = [](Job job, std::int64_t millicores) {
    job.waiting->millicores_per_rank = millicores;
    return job;
  };
  struct Row {
    const char* situation;
    std::vector<Node> nodes;
    std::vector<Job> jobs;
    Nodes want_first;   // of job "a"
    Nodes want_second;  // of job "b"
  };
  const Row rows[] = {
      {"two gangs on one host", {host("h1", 8, 0)}, {waits("a", 1, 4, 9), waits("b", 2, 2, 0)}, {"h1"}, {"h1", "h1"}},
      {"its CPU is gone, too, for the next one",
       {with_cpu(host("h1", 8, 0), 1500)},
       {waits("a", 1, 1, 9), waits("b", 1, 1, 0)},
       {"h1"},
       {}},
      {"a host with GPUs and no CPU",
       {with_cpu(host("h1", 8, 0), 900), host("h2", 8, 0)},
       {waits("a", 1, 1, 0)},
       {"h2"},
       {}},
      {"a host whose CPU is over-committed takes nobody",
       {with_cpu(host("h1", 8, 0), -500)},
       {waits("a", 1, 1, 0)},
       {},
       {}},
      {"a trainer that requests no CPU starts there all the same",
       {with_cpu(host("h1", 8, 0), 0)},
       {small(waits("a", 1, 1, 0), 0)},
       {"h1"},
       {}},
      {"a trainer without GPUs starts on a host without free ones",
       {host("h1", 8, 8)},
       {waits("a", 2, 0, 0)},
       {"h1", "h1"},
       {}},
      {"not on a cordoned one", {cordoned(host("h1", 8, 8))}, {waits("a", 2, 0, 0)}, {}, {}},
      {"spread over the hosts that hold most of it first",
       {host("h1", 8, 6), host("h2", 8, 1), host("h3", 8, 4)},
       {waits("a", 10, 1, 0)},
       {"h2", "h2", "h2", "h2", "h2", "h2", "h2", "h3", "h3", "h3"},
       {}},
      {"a host with more GPUs in use than it has is as good as full",
       {host("h1", 8, 10), host("h2", 8, 7), host("h3", 8, 7)},
       {waits("a", 2, 1, 0)},
       {"h2", "h3"},
       {}},
      {"a gang of four does not start on three",
       {host("h1", 8, 5)},
       {waits("a", 4, 1, 0), waits("b", 3, 1, 0)},
       {},
       {"h1", "h1", "h1"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const Case c{row.nodes, row.jobs, {}};
    CHECK(c.nodes_of("a") == row.want_first);
    CHECK(c.nodes_of("b") == row.want_second);
  }
}

TEST_CASE("the shortest first: who starts on the last four GPUs") {
  struct Waiter {
    std::optional<double> remaining_hours;
    double waited_hours;
  };
  struct Row {
    const char* situation;
    Waiter a, b, c;
    const char* want;
  };
  const Row rows[] = {
      {"the shortest", {3, 0}, {1, 0}, {2, 0}, "b"},
      {"an hour of waiting makes up for an hour of work", {3, 1.2}, {2, 0}, {4, 0}, "a"},
      {"two hours for four", {5, 2}, {2, 0}, {4, 0}, "a"},
      {"half an hour for half an hour", {3, 0.5}, {2.6, 0}, {4, 0}, "a"},
      {"but not for more", {3, 0.5}, {2.4, 0}, {4, 0}, "b"},
      {"unknown is like the mean of the others: longer than the shorter", {1, 0}, {{}, 0}, {9, 0}, "a"},
      {"unknown is like the mean of the others: shorter than a long one that waits for a moment",
       {{}, 0.1},
       {5, 0},
       {5.1, 0},
       "a"},
      {"four hours: not overtaken, however long it is", {1000, 4}, {0.1, 0}, {0.1, 0}, "a"},
      {"two of four hours: the one that waits longer", {1000, 4}, {1, 4.5}, {0.1, 0}, "b"},
      {"all unknown: whoever waits longest", {{}, 0}, {{}, 0.2}, {{}, 0.1}, "b"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Case all{{host("h1", 8, 4)}, {}, {.admit = Admit::kShortestFirst}};
    const Waiter waiters[] = {row.a, row.b, row.c};
    for (int i = 0; i < 3; ++i) {
      Job job = waits(std::string(1, static_cast<char>('a' + i)), 1, 4, 3600 * waiters[i].waited_hours);
      if (waiters[i].remaining_hours) job.remaining_seconds = 3600 * *waiters[i].remaining_hours;
      all.jobs.push_back(job);
    }
    REQUIRE(all.admitted().size() == 1);
    CHECK(all.nodes_of(row.want) == Nodes{"h1"});
  }
}

TEST_CASE("a job that runs already does not start again, though it still says that it waits") {
  Case c{{host("h1", 8, 0)}, {waits("a", 1, 1, 0)}, {}};
  c.jobs[0].running = true;
  CHECK(c.admitted().empty());
}

TEST_CASE("the CPU that running trainers' feeders keep is not for new ones") {
  Node node = host("h1", 8, 4);
  node.allocatable_millicores = 10'000;
  Job running = MakeJob("running").gpus(4).obj();
  running.local_adjustable = true;
  running.hosts = {{"h1", 4, 4, 8000, 8000}};
  Job trainer = waits("a", 4, 1, 0);
  struct Row {
    const char* situation;
    std::int64_t request_millicores, millicores_per_rank;
    Mode mode;
    bool want;
    void (*change)(Job& running) = [](Job&) {};
  };
  const Row rows[] = {
      {"a core per GPU is kept, the rest makes way", 8000, 1500, Mode::kAuto, true},
      {"no more than the rest", 8000, 1501, Mode::kAuto, false},
      {"it has less than a core per GPU", 2000, 2000, Mode::kAuto, true},
      {"mode Off: all of it is kept", 8000, 1500, Mode::kOff, false},
      {"mode Off: beside it", 8000, 500, Mode::kOff, true},
      {"it was told to stop, and its pods are still there: all of it is kept", 8000, 1500, Mode::kAuto, false,
       [](Job& job) { job.running = false; }},
      {"it was told to stop: beside it", 8000, 500, Mode::kAuto, true, [](Job& job) { job.running = false; }},
      {"it runs on a node that nobody knows: all of this one is free", 8000, 2500, Mode::kAuto, true,
       [](Job& job) { job.hosts[0].node = "elsewhere"; }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job beside = running;
    beside.mode = row.mode;
    beside.hosts[0].request_millicores = row.request_millicores;
    row.change(beside);
    trainer.waiting->millicores_per_rank = row.millicores_per_rank;
    CHECK(Case{{node}, {beside, trainer}, {}}.admitted().size() == (row.want ? 1 : 0));
  }
}

TEST_CASE("beside workers that must not be stopped running trainers keep what they have, elsewhere a core per GPU") {
  Job running = MakeJob("running").gpus(4).obj();
  running.ranks = 4;
  running.local_adjustable = true;
  running.hosts = {{"h1", 4, 4, 8000, 8000}};
  running.observation.measurement = FluidJob{.demand = 8000, .local_cores = 8}.steady(0, kNowSeconds - 5);
  Node node = host("h1", 8, 4);
  node.allocatable_millicores = 10'000;
  const auto starts = [&](const Job& tenant) {
    const Plan plan = decide({kNowSeconds, {node}, {running, waits("speech", 4, 1, 0), tenant}, {}, {}}, {});
    return plan_of(plan, "speech").admission.admit;
  };
  const MakeJob tenant = MakeJob("tenant").holds(1, "h1");
  CHECK_FALSE(starts(MakeJob(tenant).misses("gone").obj()));
  CHECK(starts(MakeJob(tenant).misses("gone").unmeasured_for(900).obj()));
}

TEST_CASE("workers that must not be stopped keep a trainer from their host, others make way") {
  ClusterSnapshot snapshot = MakeSnapshot().job(MakeJob("blind").holds(8, "h1").misses("gone")).obj();
  snapshot.nodes = {host("h1", 8, 0)};
  snapshot.nodes[0].allocatable_millicores = 10'000;
  Job trainer = waits("speech", 4, 1, 0);
  snapshot.jobs.push_back(trainer);
  CHECK_FALSE(plan_of(decide(snapshot, {}), "speech").admission.admit);
  snapshot.nodes.push_back(host("h2", 8, 0));
  CHECK(plan_of(decide(snapshot, {}), "speech").admission.nodes == Nodes(4, "h2"));
  snapshot.nodes.pop_back();
  snapshot.jobs[0].memory = EstimatorMemory{};
  snapshot.jobs[0].memory->unmeasured_since_seconds = kNowSeconds - 900;
  const Plan plan = decide(snapshot, {});
  CHECK(plan_of(plan, "speech").admission.admit);
  CHECK(plan_of(plan, "blind").workers == 6);
}

// An hour of arrivals every minute on a full host, each for an hour; the large gang comes after ten minutes.
TEST_CASE("nobody starves: a gang of eight starts although small ones never cease to come") {
  for (const Admit order : {Admit::kFirstCome, Admit::kShortestFirst}) {
    CAPTURE(static_cast<int>(order));
    Config config;
    config.admit = order;
    struct Running {
      int ends_minute, gpus;
    };
    std::vector<Running> running;
    std::vector<Job> waiting;
    int started_minute = -1;
    for (int minute = 0; minute < 600 && started_minute < 0; ++minute) {
      std::erase_if(running, [&](const Running& r) { return r.ends_minute == minute; });
      Job small = waits("small" + std::to_string(1000 + minute), 1, 1, 0);
      small.remaining_seconds = 3600;
      waiting.push_back(small);
      if (minute == 10) {
        waiting.push_back(waits("gang", 8, 1, 0));
        waiting.back().remaining_seconds = 36'000;
      }
      for (Job& job : waiting)
        if (job.waiting->since_seconds == kNowSeconds) job.waiting->since_seconds += 60 * minute;
      int in_use = 0;
      for (const Running& r : running) in_use += r.gpus;
      const ClusterSnapshot snapshot{kNowSeconds + 60 * minute, {host("h1", 8, in_use)}, waiting, {}, {}};
      NodeTable table(snapshot.nodes, 1000);
      const auto admitted = admit(snapshot, table, config);
      for (const auto& [id, admission] : admitted) {
        if (id.name == "gang") started_minute = minute;
        running.push_back({minute + 60, static_cast<int>(admission.nodes.size())});
      }
      std::erase_if(waiting, [&](const Job& job) { return admitted.contains(job.id); });
    }
    CAPTURE(started_minute);
    CHECK(started_minute > 0);
    CHECK(started_minute <= 10 + 240 + 60 + 1);  // four hours, until the last small one has ended
  }
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
