// Growth and placement together: who gets the cluster's CPU, on which nodes, and who goes.
#include <algorithm>

#include "scheduler/allocate/growth.h"
#include "scheduler/allocate/keeping_order.h"
#include "scheduler/allocate/placement.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

using Names = std::vector<std::string>;

// Wants 11 workers of one core (8 local-equivalent cores, 1 of them its own).

struct Grant {
  int workers = 0;
  Names victims;
  Names new_worker_nodes;
  Names occupied_nodes;  // of all workers that have a place
  bool out_of_room = false;
};

// Jobs with given targets, in the order of their names.
class Contest {
 public:
  Contest& claims(const MakeJob& job, int wanted, TargetKind kind = TargetKind::kCompeting) {
    jobs_.push_back(job.obj());
    targets_.push_back({wanted, Reason::kNeedMet, kind});
    return *this;
  }

  std::vector<Grant> on(const std::vector<Node>& on_nodes) {
    const ClusterSnapshot snapshot{kNowSeconds, on_nodes, jobs_, {}, {}};
    std::int64_t smallest = jobs_.front().worker_millicores;
    for (const Job& job : jobs_) smallest = std::min(smallest, job.worker_millicores);
    NodeTable nodes(snapshot.nodes, smallest);
    std::vector<JobPlan> plans;
    std::vector<JobAllocation> allocations = make_allocations(snapshot, nodes, config, plans);
    for (std::size_t i = 0; i < allocations.size(); ++i) {
      allocations[i].target = targets_[i];
      allocations[i].limit = targets_[i].workers;
    }
    Growth growth(allocations, nodes, snapshot, config);
    growth.hold_assured();
    growth.run();
    place(allocations, nodes, growth, Budgets(snapshot));
    std::vector<Grant> grants;
    for (const JobAllocation& c : allocations) {
      Grant grant;
      grant.workers = c.target.is_held() ? static_cast<int>(c.occupied.size()) : c.workers;
      grant.victims = victims_of(c, nodes);
      for (const int node : c.new_nodes) grant.new_worker_nodes.emplace_back(nodes.name(node));
      for (const int node : c.occupied) grant.occupied_nodes.emplace_back(nodes.name(node));
      grant.out_of_room = c.blocked == Reason::kCpu;
      grants.push_back(std::move(grant));
    }
    return grants;
  }

  std::vector<int> workers_on(const std::vector<Node>& nodes) {
    std::vector<int> workers;
    for (const Grant& grant : on(nodes)) workers.push_back(grant.workers);
    return workers;
  }

  Config config;

 private:
  std::vector<Job> jobs_;
  std::vector<Target> targets_;
};

MakeJob hungry(const std::string& name) { return MakeJob(name).measures(kHungry); }

TEST_CASE("with room for all, every job reaches its target") {
  CHECK(Contest().claims(hungry("a"), 11).claims(hungry("b"), 4).workers_on({{"n1", 15000, 0, true}}) ==
        std::vector{11, 4});
}

TEST_CASE("equal jobs share equally, the first by name gets the odd worker") {
  CHECK(Contest().claims(hungry("a"), 11).claims(hungry("b"), 11).workers_on({{"n1", 9000, 0, true}}) ==
        std::vector{5, 4});
}

TEST_CASE("which job gets the scarce worker, by situation") {
  struct Row {
    const char* situation;
    MakeJob a, b;
    std::vector<int> want;
  };
  const FluidJob nearly_fed{.demand = 8000, .local_rate = 1000, .remote_rate = 770, .local_cores = 7};
  const FluidJob small{.demand = 2000, .local_rate = 1000, .remote_rate = 770, .local_cores = 1};
  const Row rows[] = {
      {"priority is strict", hungry("a").weight(10000), hungry("b").priority(1), {0, 6}},
      {"weight is a share", hungry("a"), hungry("b").weight(120), {0, 6}},
      {"a minimum comes before any job's growth", hungry("a").min(2), hungry("b").weight(1000), {2, 4}},
      {"a minimum of low priority comes before growth of high", hungry("a").min(2), hungry("b").priority(5), {2, 4}},
      {"minima by priority", hungry("a").min(6), hungry("b").min(6).priority(1), {0, 6}},
      {"more GPUs weigh by the square root", hungry("a"), hungry("b").gpus(4), {0, 6}},
      {"nearly fed loses against starving", MakeJob("a").measures(nearly_fed), hungry("b"), {0, 6}},
      {"a core moves a small job further", hungry("a"), MakeJob("b").measures(small), {4, 2}},
      {"the one that ends sooner", hungry("a").remaining_hours(10), hungry("b").remaining_hours(1), {0, 6}},
      {"about to end is not infinitely urgent",
       hungry("a").remaining_hours(1.0 / 3600),
       hungry("b").remaining_hours(1.0 / 60),
       {3, 3}},
      {"workers that exist are worth a tenth more", hungry("a"), MakeJob("b").holds(6, "n1").measures(kHungry), {0, 6}},
      {"but not two tenths", hungry("a").weight(120), MakeJob("b").holds(6, "n1").measures(kHungry), {5, 1}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Contest contest;
    contest.config.worker_pays_after_seconds = 0;
    CHECK(contest.claims(row.a, 11).claims(row.b, 11).workers_on({{"n1", 6000, 0, true}}) == row.want);
  }
}

TEST_CASE("no worker is started for a job that ends before it pays, but none is taken away") {
  CHECK(Contest().claims(hungry("a").remaining_hours(0.01), 5).workers_on({{"n1", 6000, 0, true}}) == std::vector{0});
  CHECK(Contest()
            .claims(MakeJob("a").holds(3, "n1").measures(kHungry).remaining_hours(0.01), 5)
            .workers_on({{"n1", 6000, 0, true}}) == std::vector{3});
}

TEST_CASE("large workers do not outbid small ones: value is per core") {
  Contest contest;
  contest.claims(hungry("a").worker_millicores(3000), 4).claims(hungry("b"), 11);
  CHECK(contest.workers_on({{"n1", 6000, 0, true}}) == std::vector{1, 3});
}

TEST_CASE("no worker is added where the curve is flat, whatever is wanted") {
  Contest contest;
  contest.claims(hungry("a"), 50);
  const std::vector<Grant> grants = contest.on({{"n1", 64000, 0, true}});
  // x = (1 + 0.77 n) / 8 reaches 1.35, where the slope is 0.1, with 13 workers.
  CHECK(grants[0].workers == 13);
  CHECK_FALSE(grants[0].out_of_room);

  // Those that exist are left alone.
  CHECK(Contest().claims(MakeJob("a").holds(20, "n1").measures(kHungry), 20).workers_on({{"n1", 64000, 0, true}}) ==
        std::vector{20});
}

TEST_CASE("existing workers stay where they are, new ones are spread over the emptiest nodes") {
  const std::vector<Grant> grants = Contest()
                                        .claims(MakeJob("a").holds(2, "n2").measures(kHungry), 5)
                                        .on({{"n1", 2000, 0, true}, {"n2", 4000, 0, true}});
  CHECK(grants[0].occupied_nodes == Names{"n2", "n2", "n1", "n2", "n1"});
  CHECK(grants[0].new_worker_nodes == Names{"n1", "n2", "n1"});
  CHECK(grants[0].victims.empty());
}

TEST_CASE("a worker that is bound nowhere yet counts as existing, and needs room like a new one") {
  const Worker unbound{"a-worker-0", "", false, kNowSeconds - 3, 0, false};
  Contest contest;
  contest.claims(hungry("a").worker(unbound).allocated(1), 2);
  const std::vector<Grant> grants = contest.on({{"n1", 5000, 0, true}});
  CHECK(grants[0].workers == 2);
  CHECK(grants[0].new_worker_nodes == Names{"n1"});  // of the second
  CHECK(contest.on({{"n1", 1000, 0, true}})[0].victims.empty());

  const std::vector<Grant> without_room = contest.on({});
  CHECK(without_room[0].workers == 0);
  CHECK(without_room[0].victims == Names{"a-worker-0"});
  CHECK(without_room[0].out_of_room);
}

TEST_CASE("a worker on a node that has disappeared is like one that is bound nowhere") {
  const std::vector<Grant> grants =
      Contest().claims(MakeJob("a").holds(1, "gone").measures(kHungry), 1).on({{"n1", 1000, 0, true}});
  CHECK(grants[0].workers == 1);
  CHECK(grants[0].occupied_nodes == Names{"n1"});
}

TEST_CASE("draining workers are neither kept nor in the way") {
  const Worker draining{"a-worker-9", "n1", true, 0, 0, true};
  const std::vector<Grant> grants = Contest().claims(hungry("a").worker(draining), 2).on({{"n1", 2000, 0, true}});
  CHECK(grants[0].workers == 2);
  CHECK(grants[0].new_worker_nodes.size() == 2);
  CHECK(grants[0].victims.empty());
}

TEST_CASE("victims: unbound before starting before ready, young before old, then by name") {
  const Job job = MakeJob("a")
                      .worker({"old", "n1", true, 100, 110, false})
                      .worker({"young-a", "n1", true, 500, 510, false})
                      .worker({"young-b", "n1", true, 500, 510, false})
                      .worker({"starting", "n1", false, 50, 0, false})
                      .worker({"unbound", "", false, 10, 0, false})
                      .worker({"draining", "n1", true, 10, 20, true})
                      .allocated(5)
                      .obj();
  const ClusterSnapshot snapshot{kNowSeconds, {{"n1", 8000, 0, true}}, {job}, {}, {}};
  NodeTable nodes(snapshot.nodes, 1000);
  std::vector<JobPlan> plans;
  const std::vector<JobAllocation> allocations = make_allocations(snapshot, nodes, {}, plans);
  Names keep;
  for (const int worker : in_order_of_keeping(allocations[0], nodes)) keep.push_back(job.workers[worker].name);
  CHECK(keep == Names{"old", "young-a", "young-b", "starting", "unbound"});
}

TEST_CASE("shrinking jobs make room for growing ones in the same decision") {
  Contest contest;
  contest.claims(MakeJob("a").holds(6, "n1").measures(kHungry), 2).claims(hungry("b"), 4);
  const std::vector<Grant> grants = contest.on({{"n1", 6000, 0, true}});
  CHECK(grants[0].victims == Names{"a-worker-5", "a-worker-4", "a-worker-3", "a-worker-2"});
  CHECK(grants[1].new_worker_nodes == Names{"n1", "n1", "n1", "n1"});
}

TEST_CASE("growth displaces the least valuable worker, not the nearest one") {
  // "b" is worth four times "a", and "c" twice: b's new worker must come from a's node, although c's is the first by
  // name.
  Contest contest;
  contest.claims(MakeJob("a").holds(1, "n2").measures(kHungry), 1)
      .claims(hungry("b").weight(400), 1)
      .claims(MakeJob("c").holds(1, "n1").weight(200).measures(kHungry), 1);
  const std::vector<Grant> grants = contest.on({{"n1", 1000, 0, true}, {"n2", 1000, 0, true}});
  CHECK(grants[0].victims == Names{"a-worker-0"});
  CHECK(grants[0].out_of_room);
  CHECK(grants[1].new_worker_nodes == Names{"n2"});
  CHECK(grants[2].workers == 1);
}

TEST_CASE("a job that lost one of its workers to another is told that room binds") {
  Contest contest;
  contest.claims(MakeJob("a").holds(2, "n1").measures(kHungry), 2).claims(hungry("b").weight(400), 1);
  const std::vector<Grant> grants = contest.on({{"n1", 2000, 0, true}});
  CHECK(grants[0].workers == 1);
  CHECK(grants[0].victims == Names{"a-worker-1"});
  CHECK(grants[0].out_of_room);
}

TEST_CASE("a large worker of a higher priority displaces several small ones") {
  Contest contest;
  contest.claims(MakeJob("a").worker_millicores(500).holds(4, "n1").measures(kHungry), 4)
      .claims(hungry("b").priority(1).worker_millicores(2000), 1);
  const std::vector<Grant> grants = contest.on({{"n1", 2000, 0, true}});
  CHECK(grants[0].workers == 0);
  CHECK(grants[0].victims.size() == 4);
  CHECK(grants[1].workers == 1);
}

TEST_CASE("a displaced worker is not replaced elsewhere in the same decision") {
  // The half-core worker would fit on n2, but its job keeps the number of workers it has and so could not move it.
  Contest contest;
  contest.claims(MakeJob("a").worker_millicores(500).holds(2, "n1").measures(kHungry), 3)
      .claims(hungry("b").priority(1).worker_millicores(1000), 1);
  const std::vector<Grant> grants = contest.on({{"n1", 1000, 0, true}, {"n2", 500, 0, true}});
  CHECK(grants[1].new_worker_nodes == Names{"n1"});
  CHECK(grants[0].workers == 0);
  CHECK(grants[0].new_worker_nodes.empty());
}

TEST_CASE("workers of a held target are kept before any minimum of any priority") {
  Contest contest;
  contest.claims(MakeJob("a").holds(3, "n1"), 3, TargetKind::kHeld).claims(hungry("b").priority(9).min(3), 3);
  CHECK(contest.workers_on({{"n1", 4000, 0, true}}) == std::vector{3, 1});
}

TEST_CASE("workers of a held target are no victims even where the node says it has no room") {
  Contest contest;
  contest.claims(MakeJob("a").holds(3, "n1"), 3, TargetKind::kHeld);
  const std::vector<Grant> grants = contest.on({{"n1", 4000, 3500, true}});
  CHECK(grants[0].workers == 3);
  CHECK(grants[0].victims.empty());

  Contest lowered;
  lowered.claims(MakeJob("a").holds(3, "n1"), 1, TargetKind::kHeld);
  CHECK(lowered.on({{"n1", 4000, 0, true}})[0].victims == Names{"a-worker-2", "a-worker-1"});
}

TEST_CASE("a lost worker of a held target is replaced, but displaces no other job's kept worker") {
  Contest contest;
  contest.claims(MakeJob("a").holds(1, "n1").allocated(2), 2, TargetKind::kHeld)
      .claims(MakeJob("b").holds(1, "n1"), 1, TargetKind::kHeld);
  const std::vector<Grant> grants = contest.on({{"n1", 2000, 0, true}});
  CHECK(grants[0].workers == 1);
  CHECK(grants[1].workers == 1);
  CHECK(contest.on({{"n1", 3000, 0, true}})[0].new_worker_nodes == Names{"n1"});
}

TEST_CASE("whole workers only: room that is split over nodes is no room") {
  Contest contest;
  contest.claims(hungry("a").worker_millicores(1000), 3);
  const std::vector<Grant> grants = contest.on({{"n1", 900, 0, true}, {"n2", 900, 0, true}, {"n3", 1500, 0, true}});
  CHECK(grants[0].workers == 1);
  CHECK(grants[0].out_of_room);
}

TEST_CASE("a job whose worker fits nowhere does not keep the others from theirs") {
  Contest contest;
  contest.claims(hungry("a").priority(1).worker_millicores(9000), 3).claims(hungry("b"), 3);
  CHECK(contest.workers_on({{"n1", 3000, 0, true}}) == std::vector{0, 3});
}

}  // namespace
}  // namespace sluice::scheduler::testing
