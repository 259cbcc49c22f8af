#include "scheduler/allocate/floor.h"

#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

using Millicores = std::vector<std::int64_t>;

// Three cores per GPU.
Node host(const std::string& name, std::int64_t millicores = 24'000) {
  return {.name = name, .allocatable_millicores = millicores, .gpus = 8};
}

// A rank per GPU, on one host; it has `request_millicores` there and needs `knee` cores in all.
Job needs(const std::string& name, int gpus, double knee, std::int64_t request_millicores = 12'000) {
  Job job = MakeJob(name).gpus(gpus).obj();
  job.ranks = gpus;
  job.local_adjustable = true;
  job.hosts = {{"h", gpus, gpus, request_millicores, request_millicores}};
  const FluidJob physics{.demand = 1000 * knee,
                         .local_rate = 1000,
                         .remote_rate = 770,
                         .local_cores = static_cast<double>(request_millicores) / 1000};
  job.observation = {physics.steady(0, kNowSeconds - 5), ""};
  return job;
}

Job unknown(Job job) {
  job.observation = {std::nullopt, "no metrics yet"};
  return job;
}

// It was measured until a moment ago.
Job no_longer_measured(Job job) {
  job.memory = estimate_of(job, kNowSeconds, {}).memory;
  return unknown(std::move(job));
}

Job with(Job job, Placement placement) {
  job.placement = placement;
  return job;
}

Job with(Job job, Mode mode) {
  job.mode = mode;
  return job;
}

Job with_workers(Job job, int count, bool draining = false) {
  for (int i = 0; i < count; ++i)
    job.workers.push_back({job.id.name + std::to_string(i), "h", true, kNowSeconds - 900, kNowSeconds - 800, draining});
  job.allocated_workers = draining ? 0 : count;
  return job;
}

// Its feeders slowed it down when they used more than so many cores.
Job capped(Job job, double cores) {
  job.memory = estimate_of(job, kNowSeconds - 60, {}).memory;
  job.memory->interference.cap_cores = cores;
  job.memory->interference.capped_at_seconds = kNowSeconds - 60;
  return job;
}

// What the feeders of job "a" have on each of its hosts before any job grows.
Millicores floors(const std::vector<Node>& on, const std::vector<Job>& jobs) {
  const ClusterSnapshot snapshot{kNowSeconds, on, jobs, {}, {}};
  const Config config;
  NodeTable nodes(snapshot.nodes, 1000);
  std::vector<JobPlan> plans;
  std::vector<JobAllocation> allocations = make_allocations(snapshot, nodes, config, plans);
  hold_workers(allocations, nodes);
  grant_floors(allocations, nodes, config);
  hold_frozen(allocations, nodes);
  Millicores granted;
  for (const HostShare& share : allocations[0].hosts) granted.push_back(share.granted);
  return granted;
}

TEST_CASE("what a job has before any job grows, by situation") {
  Node cpu_only = host("h");
  cpu_only.gpus = 0;
  const auto ranks = [](Job job, int count) {
    job.ranks = job.hosts[0].ranks = count;
    job.gpus = job.hosts[0].gpus = 0;
    return job;
  };
  struct Row {
    const char* situation;
    Node node;
    std::vector<Job> jobs;
    std::int64_t want;
  };
  const Row rows[] = {
      {"needs less than its share: a twentieth more than its need", host("h"), {needs("a", 4, 5)}, 5250},
      {"needs more than its share: the share", host("h"), {needs("a", 4, 30)}, 12'000},
      {"its feeders slow its steps down: no more than they used before",
       host("h"),
       {capped(needs("a", 4, 30), 3)},
       3000},
      {"needs next to nothing: a core per GPU", host("h"), {needs("a", 4, 0.5)}, 4000},
      {"a core per GPU is more than its share", host("h", 4000), {needs("a", 4, 30, 2000)}, 2000},
      {"others' pods leave less to share",
       [] {
         Node node = host("h");
         node.requested_by_others_millicores = 8000;
         return node;
       }(),
       {needs("a", 4, 30, 8000)},
       8000},
      {"nothing is known: the share", host("h"), {unknown(needs("a", 4, 5))}, 12'000},
      {"it has just started and has nothing yet: the share", host("h"), {unknown(needs("a", 4, 5, 0))}, 12'000},
      {"placement Remote: a core per GPU for the trainer's own work",
       host("h"),
       {with(needs("a", 4, 30), Placement::kRemote)},
       4000},
      {"placement Remote, nothing known", host("h"), {with(unknown(needs("a", 4, 30)), Placement::kRemote)}, 4000},
      {"metrics vanish: what it has", host("h"), {no_longer_measured(needs("a", 4, 5, 9000))}, 9000},
      {"metrics vanish, it has next to nothing: a core per GPU",
       host("h"),
       {no_longer_measured(needs("a", 4, 5, 1000))},
       4000},
      {"metrics vanish, it has more than its share: all of it",
       host("h"),
       {no_longer_measured(needs("a", 4, 30, 15'000))},
       15'000},
      {"metrics vanish, and workers that must not be stopped leave little: what it has, before a neighbour has more",
       host("h"),
       {no_longer_measured(needs("a", 4, 30, 9000)), needs("b", 3, 30, 1000),
        with(with_workers(needs("c", 1, 5, 1000), 11), Mode::kOff)},
       9000},
      {"metrics vanish, and a neighbour needs its own share",
       host("h"),
       {no_longer_measured(needs("a", 4, 30, 15'000)), needs("b", 4, 30, 9000)},
       12'000},
      {"mode Off: as it is, whatever it needs", host("h"), {with(needs("a", 4, 30, 5000), Mode::kOff)}, 5000},
      {"mode Recommend: as it is", host("h"), {with(needs("a", 4, 5, 9000), Mode::kRecommend)}, 9000},
      {"a neighbour in mode Off leaves less to share",
       host("h"),
       {needs("a", 4, 30), with(needs("b", 4, 30, 12'000), Mode::kOff)},
       6000},
      {"the host has no GPUs: shared by ranks",
       cpu_only,
       {ranks(unknown(needs("a", 1, 5)), 2), ranks(unknown(needs("b", 1, 5)), 1)},
       16'000},
      {"the host has no GPUs: a core per rank", cpu_only, {ranks(needs("a", 1, 0.5), 2)}, 2000},
      {"the host has no GPUs, and no rank stands there any more", cpu_only, {ranks(needs("a", 1, 5), 0)}, 0},
      {"more GPUs are claimed than there are: divided by the claims",
       host("h"),
       {unknown(needs("a", 8, 5)), unknown(needs("b", 8, 5))},
       12'000},
      {"workers that must not be stopped leave it 8 cores",
       host("h"),
       {needs("a", 4, 30, 1000), with_workers(unknown(needs("b", 1, 5, 1000)), 15)},
       8000},
      {"beside workers that must not be stopped no feeder shrinks",
       host("h"),
       {needs("a", 4, 30, 12'000), with_workers(unknown(needs("b", 1, 5, 1000)), 20)},
       12'000},
      {"workers that may be stopped make way",
       host("h"),
       {needs("a", 4, 30, 1000), with_workers(needs("b", 1, 5, 1000), 20)},
       12'000},
      {"workers that are leaving are not in the way",
       host("h"),
       {needs("a", 4, 30, 1000), with_workers(unknown(needs("b", 1, 5, 1000)), 20, true)},
       12'000},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    CHECK(floors({row.node}, row.jobs)[0] == Approx(row.want).margin(1));
  }
}

TEST_CASE("a gang has its part of the need on each of its hosts") {
  Job gang = needs("a", 8, 10);
  gang.hosts = {{"g", 6, 6, 9000, 9000}, {"h", 2, 2, 3000, 3000}};
  const Millicores granted = floors({host("g"), host("h")}, {gang});
  CHECK(granted[0] == Approx(7875).margin(1));
  CHECK(granted[1] == Approx(2625).margin(1));
}

TEST_CASE("a host that is not in the snapshot: the feeders keep what they have") {
  Job job = needs("a", 4, 30, 7000);
  job.hosts[0].node = "elsewhere";
  CHECK(floors({host("h")}, {job}) == Millicores{7000});
}

TEST_CASE("growth on a host ends where the feeder could not use more") {
  SECTION("it was seen to use five cores: ten at the most") {
    Job job = needs("a", 4, 30, 12'000);
    job.observation.measurement->local = SourceRate{5000, 5};
    CHECK(decide({kNowSeconds, {host("h")}, {job}, {}, {}}, {}).jobs[0].local[0].request_millicores == 12'000);
  }
  SECTION("its other host is full: this one does not take over the ranks there") {
    Job gang = needs("a", 8, 16, 16'000);
    gang.hosts = {{"g", 4, 4, 8000, 8000}, {"h", 4, 4, 8000, 8000}};
    Node full = host("g");
    full.requested_by_others_millicores = 16'000;
    const JobPlan plan = decide({kNowSeconds, {full, host("h")}, {gang}, {}, {}}, {}).jobs[0];
    CHECK(plan.local[0].request_millicores <= 8000);
    CHECK(plan.local[1].request_millicores == Approx(1.355 * 8000).margin(20));
  }
}

TEST_CASE("the limit of the feeders: idle CPU of the host, where they may use it") {
  const auto limit = [](const Job& job) {
    return decide({kNowSeconds, {host("h")}, {job}, {}, {}}, {}).jobs[0].local[0].limit_millicores;
  };
  CHECK(limit(needs("a", 4, 0.5)) == 24'000);
  CHECK(limit(capped(needs("a", 4, 30), 3)) == 3000);
  CHECK(limit(with(needs("a", 4, 30), Placement::kRemote)) == 4000);
  CHECK(limit(with(needs("a", 4, 30, 5000), Mode::kOff)) == 5000);
  Job elsewhere = needs("a", 4, 30, 5000);
  elsewhere.hosts[0].node = "elsewhere";
  CHECK(limit(elsewhere) == 5000);
}

TEST_CASE("feeders on a host that is not in the snapshot stay as they are, and workers cover the rest") {
  Job job = needs("a", 4, 30, 5000);
  job.hosts[0].node = "elsewhere";
  const Node cpu{.name = "n", .allocatable_millicores = 64'000};
  const JobPlan plan = decide({kNowSeconds, {host("h"), cpu}, {job}, {}, {}}, {}).jobs[0];
  CHECK(plan.local[0] == LocalCpu{"elsewhere", 5000, 5000});
  CHECK(plan.workers == Approx((1.355 * 30 - 5) / 0.77).margin(2));
}

TEST_CASE("small workers that stay by order take their own room of a host, not that of the large ones of others") {
  const Job off = MakeJob("off").mode(Mode::kOff).worker_millicores(250).holds(2, "h").obj();
  const Job large = MakeJob("large").worker_millicores(3000).measures(FluidJob{.demand = 100}).obj();
  const Job feeder = with(needs("a", 4, 40, 8000), Placement::kLocal);
  const Plan plan = decide({kNowSeconds, {host("h", 16'000)}, {off, large, feeder}, {}, {}}, {});
  CHECK(plan_of(plan, "a").local[0].request_millicores == 15'500);
}

TEST_CASE("capacity for data workers is what feeders leave") {
  const Node cpu{.name = "n", .allocatable_millicores = 10'000};
  const Plan plan = decide({kNowSeconds, {host("h"), cpu}, {needs("a", 4, 0.5)}, {}, {}}, {});
  CHECK(plan.capacity_millicores == 30'000);
}

}  // namespace
}  // namespace sluice::scheduler::testing
