// Trainers are guarded against the feeders of other jobs on their nodes: what decide() watches, caps and says.
#include <algorithm>
#include <cmath>
#include <random>

#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"

namespace sluice::scheduler::testing {
namespace {

// Three cores per GPU.
Node host(const std::string& name, std::int64_t millicores = 24'000) {
  return {.name = name, .allocatable_millicores = millicores, .gpus = 8};
}

// On "h", with so many cores for its feeders, of which it needs `knee`.
Job trains(const std::string& name, int gpus, double knee, double cores) {
  Job job = MakeJob(name).gpus(gpus).obj();
  const auto millicores = static_cast<std::int64_t>(1000 * cores);
  job.ranks = gpus;
  job.local_adjustable = true;
  job.hosts = {{"h", gpus, gpus, millicores, millicores}};
  const FluidJob physics{.demand = 1000 * knee, .local_rate = 1000, .remote_rate = 770, .local_cores = cores};
  job.observation = {physics.steady(0, kNowSeconds - 5), ""};
  return job;
}

// It slowed down by 12 % when the feeders of "big" used more than so many cores.
Job suffered(Job job, double cores, double since_seconds = kNowSeconds - 60) {
  if (!job.memory) job.memory = EstimatorMemory{};
  NeighbourGuard& guard = job.memory->neighbours;
  const std::string& node = job.hosts[0].node;
  guard.through_seconds = kNowSeconds;  // no window of these tests is news
  guard.cap = NeighbourCap{since_seconds, 0.12, {"default", "big"}, node, {{node, {{{"default", "big"}, cores}}, 0}}};
  return job;
}

ClusterSnapshot with(const std::vector<Job>& jobs) {
  return {kNowSeconds, {host("h"), {.name = "cpu", .allocatable_millicores = 32'000}}, jobs, {}, {}};
}

template <typename Change>
Job but(Job job, const Change& change) {
  change(job);
  return job;
}

// On one host: a job that would use all of its cores, and one that needs next to nothing.
Job big_job() { return trains("big", 4, 16, 12); }
Job text_job() { return trains("text", 4, 0.5, 4); }

struct Situation {
  const char* situation;
  std::vector<Job> jobs;  // the first is "big"
  std::int64_t want;      // of its feeders
};

TEST_CASE("the feeders of a job whose neighbour suffers go back to what they used before") {
  const Job big = big_job(), text = text_job();
  const Situation rows[] = {
      {"no trainer suffers: its share and more", {big, text}, 20'000},
      {"its neighbour suffers", {big, suffered(text, 6)}, 6000},
      {"it keeps a core per GPU", {big, suffered(text, 1)}, 4000},
      {"two neighbours suffer",
       {trains("big", 2, 16, 6), suffered(trains("text", 2, 0.5, 2), 6), suffered(trains("speech", 2, 0.5, 2), 5)},
       5000},
      {"its own trainer suffers, too",
       {but(big,
            [](Job& job) {
              job.memory = EstimatorMemory{};
              job.memory->interference.cap_cores = 3;
              job.memory->interference.capped_at_seconds = kNowSeconds - 60;
            }),
        suffered(text, 6)},
       3000},
      {"ten minutes are over", {big, suffered(text, 6, kNowSeconds - 601)}, 20'000},
      {"the neighbour has ended",
       {big, but(suffered(text, 6), [](Job& job) { job.running = false, job.hosts.clear(); })},
       21'684},
      {"the neighbour trains on another node by now",
       {big, but(suffered(text, 6), [](Job& job) { job.hosts[0].node = "cpu"; })},
       21'684},
      {"its feeders are left as they are",
       {but(big, [](Job& job) { job.mode = Mode::kOff; }), suffered(text, 6)},
       12'000},
      {"it suffers although nothing is measured any more",
       {big, but(suffered(text, 6),
                 [](Job& job) {
                   job.observation = {std::nullopt, "no metrics"};
                 })},
       6000},
  };
  for (const Situation& row : rows) {
    CAPTURE(row.situation);
    const Plan plan = decide(with(row.jobs), {});
    CHECK(plan_of(plan, "big").local[0].request_millicores == row.want);
  }
}

TEST_CASE("data workers take the place of the feeders, and idle CPU stays idle") {
  const ClusterSnapshot snapshot = with({big_job(), suffered(text_job(), 6)});
  const Plan plan = decide(snapshot, {});
  CHECK(plan_of(plan, "big").workers >= 13);
  CHECK(plan_of(plan, "big").local[0].limit_millicores == 6000);
  CHECK(plan_of(plan, "text").local[0].request_millicores == 4000);
}

// All trainers of the cluster together have shown that feeders beyond their share make steps 45 % longer.
Job has_seen_crowding(Job job) {
  if (!job.memory) job.memory = EstimatorMemory{};
  job.memory->neighbours.through_seconds = kNowSeconds;  // no window of these tests is news
  job.memory->crowding = {.through_seconds = kNowSeconds - 60,
                          .windows = 90,  // no trials yet
                          .kept_squares = 20,
                          .kept_fourths = 4,
                          .compute_squares = 3,
                          .products = -20 * std::log(1.45),
                          .verdict = Crowding::Verdict::kHarmful};
  return job;
}

Job has_seen(Job job, Crowding crowding) {
  job = has_seen_crowding(job);
  job.memory->crowding = crowding;
  return job;
}

TEST_CASE("where feeders beyond their share slow trainers down, those beside other trainers keep to it") {
  const Job big = big_job(), text = text_job();
  const Situation rows[] = {
      {"nothing is known: its share and more", {big, text}, 20'000},
      {"one job knows", {big, has_seen_crowding(text)}, 12'000},
      {"no other trainer is on its host", {has_seen_crowding(big)}, 21'684},
      {"the other trainer is on another node",
       {big, but(has_seen_crowding(text), [](Job& job) { job.hosts[0].node = "cpu"; })},
       21'684},
      {"a job that has seen more since knows better",
       {big, has_seen_crowding(text), has_seen(trains("speech", 1, 0.5, 1), {.through_seconds = kNowSeconds})},
       19'000},
  };
  for (const Situation& row : rows) {
    INFO(row.situation);
    const Plan plan = decide(with(row.jobs), {});
    CHECK(plan_of(plan, "big").local[0].request_millicores == row.want);
    const bool said = plan_of(plan, "big")
                          .explanation.find(
                              "; its feeders keep to their share of h, 12 cores: more makes the steps of trainers "
                              "45 % longer.") != std::string::npos;
    CHECK(said == (row.want == 12'000));
    if (row.want == 12'000) CHECK(plan_of(plan, "big").local[0].limit_millicores == 12'000);
  }
}

TEST_CASE("hosts take turns to show whether feeders beyond their share slow trainers down") {
  struct Row {
    const char* situation;
    Crowding crowding;
    int kept_turns;  // of 32
  };
  const double long_ago = kNowSeconds - 60;
  const Row rows[] = {
      {"too little has been seen for trials", {.through_seconds = long_ago, .windows = 99}, 0},
      {"nothing is known: one turn in four", {.through_seconds = long_ago, .windows = 100}, 8},
      {"they are harmless", {.through_seconds = long_ago, .windows = 100, .verdict = Crowding::Verdict::kHarmless}, 1},
      {"they are harmful", {.through_seconds = long_ago, .windows = 100, .verdict = Crowding::Verdict::kHarmful}, 31},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    ClusterSnapshot snapshot = with({big_job(), has_seen(text_job(), row.crowding)});
    int kept = 0;
    for (int turn = 0; turn < 32; ++turn) {
      const Plan plan = decide(snapshot, {});
      const bool keeps = plan_of(plan, "big").local[0].request_millicores == 12'000;
      kept += keeps ? 1 : 0;
      const bool on_trial =
          plan_of(plan, "big").explanation.find("12 cores, for at most five minutes, to see") != std::string::npos;
      CHECK(on_trial == (keeps && row.crowding.verdict != Crowding::Verdict::kHarmful));
      snapshot.taken_at_seconds += 300;
      for (Job& job : snapshot.jobs) job.observation.measurement->window_end_seconds += 300;
      for (Job& job : snapshot.jobs)
        if (job.memory) job.memory->neighbours.through_seconds = snapshot.taken_at_seconds;
    }
    CHECK(kept == row.kept_turns);
  }
}

TEST_CASE("a new job learns at once what the others have seen of crowded hosts") {
  const Plan plan = decide(with({big_job(), has_seen_crowding(text_job())}), {});
  REQUIRE(plan_of(plan, "big").estimate.memory);
  CHECK(plan_of(plan, "big").estimate.memory->crowding == plan_of(plan, "text").estimate.memory->crowding);
}

TEST_CASE("both jobs are told who suffered from whom, and by how much; names of other namespaces are not") {
  ClusterSnapshot snapshot = with({big_job(), suffered(text_job(), 6)});
  Plan plan = decide(snapshot, {});
  CHECK(plan_of(plan, "big")
            .explanation.find("; it has at most 6 cores beside it on h: more CPU of feeders there "
                              "slowed the steps of text down by 12 %.") != std::string::npos);
  CHECK(plan_of(plan, "text")
            .explanation.find("; more CPU of feeders of big on h slowed its own steps down by 12 %, "
                              "and is taken back for ten minutes.") != std::string::npos);
  snapshot.jobs[1].id.job_namespace = "secret";
  plan = decide(snapshot, {});
  CHECK(plan_of(plan, "big").explanation.find("the steps of a job of another namespace down") != std::string::npos);
  CHECK(plan_of(plan, "text").explanation.find("feeders of a job of another namespace on h") != std::string::npos);
  for (const JobPlan& job : plan.jobs) {
    CHECK(job.explanation.find("secret") == std::string::npos);
    if (job.id.name == "text") CHECK(job.explanation.find("big") == std::string::npos);
  }
}

// Decisions every 15 s on the windows of a trainer "text", beside the feeders of "big".
struct Loop {
  ClusterSnapshot snapshot = with({big_job(), text_job()});
  Plan plan;

  Job& big() { return snapshot.jobs[0]; }
  Job& text() { return snapshot.jobs[1]; }
  // `slower`: how much longer text computes for a batch.
  void see(int windows, double big_cores, double slower) {
    for (int i = 0; i < windows; ++i) {
      snapshot.taken_at_seconds += 15;
      const double end_seconds = snapshot.taken_at_seconds - 5;
      for (Job& job : snapshot.jobs)
        if (job.observation.measurement) job.observation.measurement->window_end_seconds = end_seconds;
      if (big().observation.measurement) big().observation.measurement->local = {1000 * big_cores, big_cores};
      const FluidJob physics{.demand = 500 / slower, .local_rate = 1000, .remote_rate = 770, .local_cores = 4};
      text().observation.measurement = physics.steady(0, end_seconds);
      plan = decide(snapshot, {});
      for (Job& job : snapshot.jobs) job.memory = plan_of(plan, job.id.name).estimate.memory;
    }
  }
  const NeighbourGuard& guard() { return text().memory->neighbours; }
  std::int64_t local_of_big() { return plan_of(plan, "big").local[0].request_millicores; }
};

TEST_CASE("a growth of feeders is watched, and taken back where it slows a neighbour down") {
  Loop loop;
  loop.see(12, 5, 1);
  CHECK(loop.local_of_big() > 5000);
  loop.see(10, 14, 1.2);
  REQUIRE(loop.guard().cap.has_value());
  CHECK(loop.local_of_big() == 5000);
  loop.see(39, 5, 1);
  CHECK(loop.local_of_big() == 5000);
  loop.see(2, 5, 1);
  CHECK(loop.local_of_big() > 5000);
}

TEST_CASE("a trainer that was seen alone has a reference when another one comes") {
  Loop loop;
  loop.big().running = false;
  loop.see(12, 0, 1);
  loop.big().running = true;
  loop.see(10, 14, 1.2);
  REQUIRE(loop.guard().cap.has_value());
  CHECK(loop.local_of_big() == 4000);
}

TEST_CASE("windows that tell nothing about neighbours are passed over") {
  Loop loop;
  loop.see(12, 5, 1);
  const int before = loop.guard().reference.count;
  const auto is_passed_over = [&](double slower) {
    loop.see(15, 14, slower);
    return loop.guard().reference.count == before && loop.guard().grown.count == 0 && !loop.guard().cap;
  };
  SECTION("the neighbour is not measured") {
    loop.big().observation = {std::nullopt, "no metrics"};
    CHECK(is_passed_over(1.2));
  }
  SECTION("its metrics cannot be read") {
    loop.big().observation.measurement->wait_share = -1;
    CHECK(is_passed_over(1.2));
  }
  SECTION("data workers came to the node") {
    for (int i = 0; i < 4; ++i) loop.text().workers.push_back({"w" + std::to_string(i), "h", true, 0, 0, false});
    CHECK(is_passed_over(1.2));
  }
  SECTION("more trainers than can be told apart") {
    for (int i = 0; i < 32; ++i) loop.snapshot.jobs.push_back(trains("other" + std::to_string(i), 0, 0.1, 0.1));
    CHECK(is_passed_over(1.2));
  }
}

TEST_CASE("feeders that no plan shrinks are not blamed") {
  Loop loop;
  loop.big().mode = Mode::kOff;
  loop.see(12, 5, 1);
  loop.see(40, 12, 1.2);
  CHECK_FALSE(loop.guard().cap.has_value());
}

// Some trainers have suffered from whatever else is on their nodes.
ClusterSnapshot with_guards(unsigned seed, const ClusterShape& shape) {
  ClusterSnapshot snapshot = random_cluster(seed, shape);
  std::minstd_rand random(seed);
  for (Job& job : snapshot.jobs) {
    if (job.hosts.empty() || random() % 2 == 0) continue;
    if (!job.memory) job.memory = EstimatorMemory{};
    NeighbourGuard& guard = job.memory->neighbours;
    const double age_seconds = static_cast<double>(random() % 900);
    guard.through_seconds = snapshot.taken_at_seconds;
    guard.cap = NeighbourCap{snapshot.taken_at_seconds - age_seconds, 0.1, job.id, job.hosts[0].node};
    for (const TrainerHost& at : job.hosts) {
      NodeLoad& load = guard.cap->load.emplace_back(NodeLoad{at.node});
      for (const Job& other : snapshot.jobs)
        if (random() % 2 == 0) load.feeders.push_back({other.id, static_cast<double>(random() % 8)});
    }
  }
  return snapshot;
}

TEST_CASE("caps for neighbours: the rules hold, and the order of jobs and nodes makes no difference") {
  property("caps", [](unsigned seed) {
    ClusterSnapshot snapshot = with_guards(seed, everything());
    const Plan plan = decide(snapshot, some_config(seed));
    RC_ASSERT(broken_rules(snapshot, plan) == std::vector<std::string>());
    const std::string want = text_of(plan);
    std::minstd_rand random(seed);
    std::shuffle(snapshot.nodes.begin(), snapshot.nodes.end(), random);
    std::shuffle(snapshot.jobs.begin(), snapshot.jobs.end(), random);
    RC_ASSERT(text_of(decide(snapshot, some_config(seed))) == want);
  });
}

TEST_CASE("caps for neighbours: feeders are never granted more than theirs, or their floor") {
  int capped = 0;
  property("caps bind", [&](unsigned seed) {
    const ClusterSnapshot snapshot = with_guards(seed, {});
    const Plan plan = decide(snapshot, some_config(seed));
    for (const Job& trainer : snapshot.jobs) {
      if (!trainer.memory || !trainer.memory->neighbours.holds(snapshot.taken_at_seconds, {})) continue;
      for (const NodeLoad& load : trainer.memory->neighbours.cap->load)
        for (const JobPlan& job : plan.jobs)
          for (std::size_t i = 0; i < job.local.size(); ++i) {
            if (job.local[i].node != load.node || job.id == trainer.id) continue;
            const double least = job_of(snapshot, job.id).hosts[i].gpus;
            RC_ASSERT(static_cast<double>(job.local[i].request_millicores) <=
                      1000 * std::max(load.cores_of(job.id), least));
            ++capped;
          }
    }
  });
  CHECK(capped > 100);
}

}  // namespace
}  // namespace sluice::scheduler::testing
