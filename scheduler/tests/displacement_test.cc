// Who makes way on a node for a larger and more important worker, beyond the single nodes of placement_test.cc.
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

using Names = std::vector<std::string>;

Node node_at_price(const std::string& name, std::int64_t millicores, double price_per_hour = 0) {
  return {.name = name, .allocatable_millicores = millicores, .price_per_hour = price_per_hour};
}

Job large(std::int64_t millicores) {
  return MakeJob("large").priority(2).worker_millicores(millicores).measures(kHungry).max(1).obj();
}

// Workers of half a core.
Job small(int count, const std::string& at) {
  return MakeJob("small").worker_millicores(500).holds(count, at).measures(kHungry).max(count).obj();
}

Plan decided(std::vector<Node> nodes, std::vector<Job> jobs) {
  return decide({kNowSeconds, std::move(nodes), std::move(jobs), {}, {}}, {});
}

TEST_CASE("a node that is full to the last core is cleared, and found, where no other is large enough") {
  // Two cores are free, one on each of two small nodes.
  const std::vector<Node> nodes = {node_at_price("full", 2000), node_at_price("small-1", 1000),
                                   node_at_price("small-2", 1000)};
  const Plan plan = decided(nodes, {large(2000), small(4, "full")});
  CHECK(plan_of(plan, "large").new_worker_nodes == Names{"full"});
  CHECK(plan_of(plan, "small").victims.size() == 4);
  CHECK(plan_of(plan, "small").workers == 0);
  CHECK(plan_of(plan, "small").new_worker_nodes.empty());
}

TEST_CASE("no more than must go, though a third job would like the room: it has room where it is dearer") {
  // The large worker needs a core and a half of "busy", where two half-cores stand on two. The middle one would take
  // any room that is left there, for it costs nothing.
  Job middle = MakeJob("middle").priority(1).worker_millicores(500).measures(kHungry).max(1).obj();
  const Plan plan =
      decided({node_at_price("busy", 2000), node_at_price("dear", 1000, 1)}, {large(1500), middle, small(2, "busy")});
  CHECK(plan_of(plan, "large").new_worker_nodes == Names{"busy"});
  CHECK(plan_of(plan, "middle").new_worker_nodes == Names{"dear"});
  CHECK(plan_of(plan, "small").workers == 1);
  CHECK(plan_of(plan, "small").victims.size() == 1);
}

TEST_CASE("a job that had grown to its max and makes way is told that no node has room, not that max limits it") {
  Job grown = small(4, "full");
  grown.local_adjustable = true;  // so its feeder bids beside its workers, up to a supply ratio
  grown.hosts = {{.node = "host", .ranks = 1, .gpus = 1, .request_millicores = 1000, .limit_millicores = 1000}};
  const FluidJob needs_100_cores{.demand = 100'000, .local_rate = 1000, .remote_rate = 1000, .local_cores = 1};
  grown.observation = {needs_100_cores.steady(2, kNowSeconds - 5), ""};
  const std::vector<Node> nodes = {node_at_price("full", 2000), node_at_price("host", 1000),
                                   node_at_price("small-1", 1000), node_at_price("small-2", 1000)};
  const Plan plan = decided(nodes, {large(2000), grown});
  CHECK(plan_of(plan, "large").new_worker_nodes == Names{"full"});
  CHECK(plan_of(plan, "small").workers == 0);
  CHECK(plan_of(plan, "small").reason == Reason::kCpu);
}

}  // namespace
}  // namespace sluice::scheduler::testing
