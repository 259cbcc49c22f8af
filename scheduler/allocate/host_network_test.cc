#include "scheduler/allocate/host_network.h"

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

constexpr double kTraffic = 40;  // bytes/s that a worker sends

// A job whose ranks are on hosts "a" and "b", a half each. The CPU of the hosts is for workers of one core.
struct Fixture {
  std::vector<Node> nodes;
  NodeTable table;
  JobAllocation allocation;

  Fixture(std::int64_t millicores_of_a, std::int64_t millicores_of_b)
      : nodes{{"a", millicores_of_a}, {"b", millicores_of_b}}, table(nodes, 1000) {
    allocation.job = &job_;
    allocation.worker_millicores = 1000;
    allocation.worker_traffic = kTraffic;
    allocation.groups = ~GroupSet{0};
    for (int node = 0; node < table.size(); ++node) allocation.hosts.push_back({.node = node, .part = 0.5});
  }

  // How many of ten workers the networks carry.
  int taken(double into_a, double into_b) {
    table[0].receives_bytes_per_second = into_a;
    table[1].receives_bytes_per_second = into_b;
    return HostNetwork(table).take(allocation, 10);
  }

 private:
  Job job_;
};

TEST_CASE("each host's network carries its part of a worker's traffic") {
  Fixture f(0, 0);
  CHECK(f.taken(100, 100) == 5);
  CHECK(f.allocation.elsewhere_workers == 5);
}

TEST_CASE("the narrowest network decides") {
  Fixture f(0, 0);
  CHECK(f.taken(100, 50) == 2);
}

TEST_CASE("a host without ranks of the job counts for nothing, however full its network is") {
  Fixture f(0, 0);
  f.allocation.hosts[1].part = 0;
  CHECK(f.taken(100, -1) == 5);
}

TEST_CASE("a worker on a host takes nothing of that host's network") {
  Fixture f(2000, 0);
  CHECK(f.taken(0, 1000) == 2);
  CHECK(f.allocation.hosts[0].own_workers == 2);
  CHECK(f.allocation.elsewhere_workers == 0);
}

TEST_CASE("of two hosts with room a worker goes to the one with less network left") {
  Fixture f(1000, 1000);
  CHECK(f.taken(1000, 10) == 1);
  CHECK(f.allocation.hosts[0].own_workers == 0);
  CHECK(f.allocation.hosts[1].own_workers == 1);
}

TEST_CASE("what is given back can be taken again") {
  Fixture f(1000, 0);
  f.table[0].receives_bytes_per_second = 40;
  f.table[1].receives_bytes_per_second = 60;
  HostNetwork network(f.table);
  for (int round = 0; round < 3; ++round) {
    INFO("round " << round);
    CHECK(network.take(f.allocation, 10) == 3);  // one on "a", two elsewhere
    CHECK(f.allocation.hosts[0].own_workers == 1);
    network.give_back(f.allocation, 3);
    CHECK(f.allocation.hosts[0].own_workers + f.allocation.elsewhere_workers == 0);
  }
}

}  // namespace
}  // namespace sluice::scheduler
