#include "scheduler/model/snapshot.h"

#include <algorithm>
#include <numeric>

namespace sluice::scheduler {
namespace {

// Mostly they stand in this order already.
template <typename Object, typename Before>
std::vector<const Object*> sorted(const std::vector<Object>& objects, Before before) {
  std::vector<const Object*> pointers;
  pointers.reserve(objects.size());
  for (const Object& object : objects) pointers.push_back(&object);
  if (!std::is_sorted(pointers.begin(), pointers.end(), before)) std::sort(pointers.begin(), pointers.end(), before);
  return pointers;
}

}  // namespace

std::vector<const Job*> jobs_by_id(const ClusterSnapshot& snapshot) {
  return sorted(snapshot.jobs, [](const Job* a, const Job* b) { return a->id < b->id; });
}

std::vector<const Node*> nodes_by_name(const std::vector<Node>& nodes) {
  return sorted(nodes, [](const Node* a, const Node* b) { return a->name < b->name; });
}

std::int64_t local_limit_millicores(const Job& job) {
  return std::accumulate(job.hosts.begin(), job.hosts.end(), std::int64_t{0},
                         [](std::int64_t sum, const TrainerHost& host) { return sum + host.limit_millicores; });
}

}  // namespace sluice::scheduler
