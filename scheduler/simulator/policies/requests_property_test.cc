// The invariants of requests.h for random requests on random clusters: whatever a baseline asks for, its plan can be
// carried out.
#include "scheduler/simulator/policies/requests.h"

#include <algorithm>
#include <map>
#include <random>
#include <sstream>

#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"

namespace sluice::scheduler::testing {
namespace {

// Baselines know neither memory nor networks nor money.
ClusterShape any_shape() {
  ClusterShape shape = everything();
  shape.memory = shape.networks = shape.budget = false;
  return shape;
}

struct Case {
  explicit Case(unsigned seed) : snapshot(random_cluster(seed, any_shape())) {
    std::mt19937 random(seed);
    for (const Job& job : snapshot.jobs) {
      Request request{.workers = static_cast<int>(random() % 12)};
      if (random() % 2 == 0) {
        request.local.emplace();
        for (const TrainerHost& host : job.hosts) {
          const auto millicores = static_cast<std::int64_t>(random() % 20'000);
          request.local->push_back({host.node, millicores, millicores});
        }
      }
      requests.push_back(std::move(request));
    }
    turns = random() % 2 == 0 ? Turns::kOneEach : Turns::kJobByJob;
    worker_nodes = random() % 2 == 0 ? WorkerNodes::kAll : WorkerNodes::kWithoutGpus;
  }

  Plan plan() const { return grant(snapshot, requests, turns, worker_nodes); }

  ClusterSnapshot snapshot;
  std::vector<Request> requests;
  Turns turns;
  WorkerNodes worker_nodes;
};

struct Load {
  std::int64_t millicores = 0;
  int new_workers = 0;
};

std::map<std::string, Load> loads(const Case& c, const Plan& plan) {
  std::map<std::string, Load> loads;
  for (const JobPlan& its : plan.jobs) {
    const Job& job = job_of(c.snapshot, its.id);
    for (const LocalCpu& local : its.local) loads[local.node].millicores += local.request_millicores;
    for (const Worker* worker : staying(job, its)) loads[worker->node].millicores += job.worker_millicores;
    for (const std::string& node : its.new_worker_nodes) {
      loads[node].millicores += job.worker_millicores;
      ++loads[node].new_workers;
    }
  }
  return loads;
}

TEST_CASE("whatever baselines ask for: no node is given more than it has, and new workers go where they may") {
  property("requests on nodes", [](unsigned seed) {
    const Case c(seed);
    std::map<std::string, Load> on = loads(c, c.plan());
    for (const Node& node : c.snapshot.nodes) {
      const std::int64_t usable = NodeIndex::usable_millicores(node);
      RC_ASSERT(on[node.name].millicores <= usable);
      if (on[node.name].new_workers == 0) continue;
      RC_ASSERT(node.schedulable);
      RC_ASSERT(node.gpus == 0 || c.worker_nodes == WorkerNodes::kAll);
    }
  });
}

TEST_CASE("whatever baselines ask for: bounds, modes, placements and quotas hold") {
  property("requests of jobs", [](unsigned seed) {
    const Case c(seed);
    std::int64_t of_team = 0;
    bool more = false;
    for (const JobPlan& its : c.plan().jobs) {
      const Job& job = job_of(c.snapshot, its.id);
      if (job.mode == Mode::kAuto) RC_ASSERT(its.workers <= job.max_workers);
      if (job.mode == Mode::kAuto && (!job.running || job.placement == Placement::kLocal)) RC_ASSERT(its.workers == 0);
      if (job.mode != Mode::kAuto) RC_ASSERT(its.workers <= job.allocated_workers);
      const auto stay = std::ssize(staying(job, its));
      RC_ASSERT(stay <= its.workers);
      RC_ASSERT(stay + std::ssize(its.new_worker_nodes) == its.workers);
      if (job.quota != "team") continue;
      of_team += its.workers * job.worker_millicores;
      more |= !its.new_worker_nodes.empty();
    }
    RC_ASSERT(!more || of_team <= *c.snapshot.quotas[0].worker_millicores);
  });
}

TEST_CASE("whatever baselines ask for: the order of nodes, jobs and workers means nothing") {
  property("requests permuted", [](unsigned seed) {
    Case c(seed);
    const auto text = [&] {
      std::ostringstream out;
      for (const JobPlan& its : c.plan().jobs) {
        out << its.id.name << ' ' << its.workers << ' ' << to_string(its.reason);
        for (const std::string& victim : its.victims) out << " -" << victim;
        for (const std::string& node : its.new_worker_nodes) out << " +" << node;
        for (const LocalCpu& local : its.local) out << ' ' << local.node << ':' << local.request_millicores;
      }
      return out.str();
    };
    const std::string want = text();
    std::mt19937 random(seed + 1);
    std::shuffle(c.snapshot.nodes.begin(), c.snapshot.nodes.end(), random);
    std::vector<std::size_t> order(c.requests.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    const Case sorted = c;
    for (std::size_t i = 0; i < order.size(); ++i) {
      c.snapshot.jobs[i] = sorted.snapshot.jobs[order[i]];
      c.requests[i] = sorted.requests[order[i]];
      std::shuffle(c.snapshot.jobs[i].workers.begin(), c.snapshot.jobs[i].workers.end(), random);
    }
    RC_ASSERT(text() == want);
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
