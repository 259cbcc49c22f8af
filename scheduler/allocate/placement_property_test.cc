// Placement against slow and simple ones, on random nodes.
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"

namespace sluice::scheduler::testing {
namespace {

// Needs more than there will ever be.
const FluidJob kInsatiable{.demand = 500'000, .local_cores = 8};

class Nodes {
 public:
  explicit Nodes(unsigned seed) : random_(seed) {}

  int upto(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  // Of all kinds, in whole cores.
  std::vector<Node> of_all_kinds() {
    std::vector<Node> nodes;
    for (int i = 1 + upto(6); i > 0; --i) {
      Node node{.name = "n" + std::to_string(i), .allocatable_millicores = 1000 * upto(9)};
      node.requested_by_others_millicores = 1000 * upto(3);
      node.schedulable = upto(5) > 0;
      node.gpus = upto(3) == 0 ? 8 : 0;
      node.price_per_hour = 0.25 * upto(3) * static_cast<double>(node.allocatable_millicores) / 1000;
      nodes.push_back(node);
    }
    return nodes;
  }

 private:
  std::mt19937 random_;
};

// More than half of what the node with the most has.
bool has_most_data(const Job& job, const Node& node) {
  double most = 0, here = 0;
  for (const KeptData& kept : job.kept) {
    most = std::max(most, kept.bytes);
    if (kept.node == node.name) here = kept.bytes;
  }
  return here > most / 2;
}

std::int64_t room_for_new(const Node& node) {
  if (!node.schedulable) return 0;
  return node.allocatable_millicores - node.requested_by_others_millicores;
}

TEST_CASE("every new worker goes to the best node at its turn: without GPUs, cheap, with its data, empty, by name") {
  property("new workers", [](unsigned seed) {
    Nodes random(seed);
    ClusterSnapshot snapshot{kNowSeconds, random.of_all_kinds(), {}, {}, {}};
    for (const int priority : {3, 2, 1})
      snapshot.jobs.push_back(MakeJob("j" + std::to_string(priority))
                                  .priority(priority)
                                  .max(1 + random.upto(12))
                                  .measures(kInsatiable)
                                  .obj());
    for (Job& job : snapshot.jobs)
      for (const Node& node : snapshot.nodes)
        if (random.upto(3) == 0) job.kept.push_back({node.name, 1e9 * random.upto(9)});
    const Plan plan = decide(snapshot, {});
    std::map<std::string, std::int64_t> room;
    for (const Node& node : snapshot.nodes) room[node.name] = room_for_new(node);
    for (const Job& job : snapshot.jobs) {
      const JobPlan& its = plan_of(plan, job.id.name);
      for (int worker = 0; worker < std::max(its.workers, 1); ++worker) {
        const Node* best = nullptr;
        const auto rank = [&](const Node& node) {
          return std::make_tuple(node.gpus > 0, price_per_core(node), !has_most_data(job, node), -room[node.name],
                                 node.name);
        };
        for (const Node& node : snapshot.nodes)
          if (room[node.name] >= 1000 && (best == nullptr || rank(node) < rank(*best))) best = &node;
        RC_ASSERT((best != nullptr) == (worker < its.workers));
        if (best == nullptr) break;
        RC_ASSERT(its.new_worker_nodes[worker] == best->name);
        room[best->name] -= 1000;
      }
      RC_ASSERT(std::ssize(its.new_worker_nodes) == its.workers);
    }
  });
}

TEST_CASE("what caches have kept changes neither how many workers a job gets nor what they cost, and moves none") {
  property("data-local", [](unsigned seed) {
    ClusterShape shape = everything();
    shape.networks = false;  // a worker on the trainer's own node leaves room in its network for others
    ClusterSnapshot snapshot = random_cluster(seed, shape);
    snapshot.jobs.resize(1);  // of several jobs one may take another one's node
    const JobPlan without = decide(snapshot, some_config(seed)).jobs[0];
    for (std::size_t i = seed % 2; i < snapshot.nodes.size(); i += 2)
      snapshot.jobs[0].kept.push_back({snapshot.nodes[i].name, 1e9});
    const Plan plan = decide(snapshot, some_config(seed));
    const JobPlan& with = plan.jobs[0];
    RC_ASSERT(broken_rules(snapshot, plan) == std::vector<std::string>{});
    RC_ASSERT(with.victims == without.victims);
    RC_ASSERT(with.local == without.local);
    const auto kinds_of = [&](const std::vector<std::string>& names) {
      std::multiset<std::pair<bool, double>> kinds;
      for (const std::string& name : names) {
        const Node& node = node_of(snapshot, name);
        kinds.insert({node.gpus > 0, price_per_core(node)});
      }
      return kinds;
    };
    RC_ASSERT(kinds_of(with.new_worker_nodes) == kinds_of(without.new_worker_nodes));
  });
}

// Small workers of half a core stand on nodes of up to four cores; a worker of two cores of a more important job comes.
struct Displacement {
  explicit Displacement(unsigned seed) {
    Nodes random(seed);
    MakeJob maker = MakeJob("small").measures(kInsatiable);
    for (int i = 1 + random.upto(4); i > 0; --i) {
      Node node{.name = "n" + std::to_string(i), .allocatable_millicores = 500 * (1 + random.upto(8))};
      node.schedulable = random.upto(6) > 0;
      // On nodes that are being drained none: these go first, whichever job needs the room.
      held[node.name] = node.schedulable ? random.upto(static_cast<int>(node.allocatable_millicores / 500) + 1) : 0;
      maker.holds(held[node.name], node.name);
      snapshot.nodes.push_back(node);
    }
    Job small = maker.obj();
    small.worker_millicores = 500;
    small.max_workers = small.allocated_workers;
    Job large = MakeJob("large").priority(1).max(1).measures(kInsatiable).obj();
    large.worker_millicores = kLarge;
    snapshot.taken_at_seconds = kNowSeconds;
    snapshot.jobs = {small, large};
  }

  // Half-cores that have to be cleared on the node; none when all of them are not enough.
  std::optional<int> in_the_way(const Node& node) const {
    if (!node.schedulable || node.allocatable_millicores < kLarge) return std::nullopt;
    const std::int64_t free = node.allocatable_millicores - 500 * held.at(node.name);
    return static_cast<int>(std::max<std::int64_t>(0, kLarge - free) / 500);
  }

  static constexpr std::int64_t kLarge = 2000;
  ClusterSnapshot snapshot;
  std::map<std::string, int> held;
};

TEST_CASE("an important large worker finds a place if any node can be cleared for it, and others lose what must go") {
  property("displacement", [](unsigned seed) {
    const Displacement case_of(seed);
    std::optional<int> least;
    for (const Node& node : case_of.snapshot.nodes)
      if (const auto here = case_of.in_the_way(node); here && (!least || *here < *least)) least = here;
    const Plan plan = decide(case_of.snapshot, {});
    RC_ASSERT(broken_rules(case_of.snapshot, plan) == std::vector<std::string>{});
    RC_ASSERT(plan_of(plan, "large").workers == (least ? 1 : 0));
    const JobPlan& small = plan_of(plan, "small");
    const int held = case_of.snapshot.jobs[0].allocated_workers;
    // Workers that go for the sum of cores and workers that go for the node may be different ones.
    RC_ASSERT(small.workers >= held - 2 * least.value_or(0));
    RC_ASSERT(small.workers <= held - least.value_or(0));
  });
}

TEST_CASE("a job that gives up workers keeps the best of them, by every pair") {
  property("kept", [](unsigned seed) {
    Nodes random(seed);
    ClusterSnapshot snapshot{kNowSeconds, random.of_all_kinds(), {}, {}, {}};
    for (Node& node : snapshot.nodes) {
      node.allocatable_millicores += 64'000;  // no worker is crowded out
      node.price_per_hour = 16 * random.upto(3);
      node.spot = random.upto(3) == 0;
    }
    MakeJob maker = MakeJob("a").measures(kInsatiable);
    const int workers = 2 + random.upto(8);
    for (int i = 0; i < workers; ++i) {
      const Node& node = snapshot.nodes[random.upto(static_cast<int>(snapshot.nodes.size()))];
      maker.worker({"w" + std::to_string(i), random.upto(6) == 0 ? "" : node.name, random.upto(4) > 0,
                    kNowSeconds - 100 * (1 + random.upto(4)), kNowSeconds - 90, false});
    }
    snapshot.jobs = {maker.allocated(workers).max(random.upto(workers)).obj()};
    const JobPlan plan = decide(snapshot, {}).jobs[0];
    // Places in order of what matters; the smaller one is kept longer. Of equals by all of these, room and name decide.
    const auto standing = [&](const Worker& worker) {
      const Node* node = worker.node.empty() ? nullptr : &node_of(snapshot, worker.node);
      return std::make_tuple(node != nullptr && !node->schedulable, !worker.ready, node == nullptr,
                             node == nullptr ? 0 : price_per_core(*node), node != nullptr && node->spot,
                             worker.created_at_seconds);
    };
    const Job& job = snapshot.jobs[0];
    RC_ASSERT(std::ssize(plan.victims) == workers - plan.workers);
    for (const Worker* stays : staying(job, plan))
      for (const Worker& other : job.workers)
        if (std::find(plan.victims.begin(), plan.victims.end(), other.name) != plan.victims.end())
          RC_ASSERT(standing(*stays) <= standing(other));
    // First to go first.
    for (std::size_t i = 1; i < plan.victims.size(); ++i) {
      const auto of = [&](const std::string& name) {
        return standing(*std::find_if(job.workers.begin(), job.workers.end(),
                                      [&](const Worker& worker) { return worker.name == name; }));
      };
      RC_ASSERT(of(plan.victims[i - 1]) >= of(plan.victims[i]));
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
