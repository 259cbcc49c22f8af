// The shares of the nodes' CPU that data workers may take, and leave free.
#include "operator/observe/snapshot_builder.h"

#include "operator/testing/seen_cluster.h"
#include "src/base/testing/catch.h"

namespace sluice::observe {
namespace {

using namespace testing;

TEST_CASE("workers may be kept to a share of each node") {
  const auto snapshot = SnapshotBuilder().build(cluster(), {}, {}, {.cluster_cpu_percent = 50}, kNow);
  CHECK(snapshot.nodes[0].allocatable_millicores == 700 + 2000);
  CHECK(snapshot.nodes[0].requested_by_others_millicores == 700);
}

TEST_CASE("a share of a node's CPU is left free for pods that come, where the node has four cores or more") {
  struct Row {
    const char* situation;
    const char* cpu;  // of the node
    const char* others;
    int free_percent;
    std::int64_t want_millicores;  // for others and workers together
    bool want_kept;
  };
  const Row row = GENERATE(
      Row{"four cores", "4", "700m", 5, 3800, true}, Row{"a large node", "64", "8", 5, 60'800, true},
      Row{"a small node keeps nothing", "3999m", "700m", 5, 3999, false},
      Row{"others have begun on the share", "4", "3900m", 5, 3900, true},
      Row{"others have all", "4", "4", 5, 4000, true}, Row{"no share is asked for", "4", "700m", 0, 4000, false});
  CAPTURE(row.situation);
  ClusterObjects objects;
  put(objects.nodes, node("n1", row.cpu));
  put(objects.pods, pod("other", "n1", row.others));
  SnapshotBuilder builder;
  const auto snapshot = builder.build(objects, {}, {}, {.free_cpu_percent = row.free_percent}, kNow);
  CHECK(snapshot.nodes[0].allocatable_millicores == row.want_millicores);
  CHECK(builder.keeps_cpu_free() == row.want_kept);
}

}  // namespace
}  // namespace sluice::observe
