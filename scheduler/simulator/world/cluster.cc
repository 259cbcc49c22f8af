#include "scheduler/simulator/world/cluster.h"

#include <algorithm>

namespace sluice::simulator {

int Cluster::data_set(const std::string& name) const {
  const auto found =
      std::find_if(data_sets.begin(), data_sets.end(), [&](const DataSet& data) { return data.name == name; });
  return found == data_sets.end() ? -1 : static_cast<int>(found - data_sets.begin());
}

int Cluster::gpus() const {
  int total = 0;
  for (const NodeGroup& group : groups) total += group.count * group.gpus;
  return total;
}

double Cluster::cores() const {
  double total = 0;
  for (const NodeGroup& group : groups) total += group.count * group.cores;
  return total;
}

double Cluster::gpu_host_cores() const {
  double total = 0;
  for (const NodeGroup& group : groups) total += group.gpus > 0 ? group.count * group.cores : 0;
  return total;
}

double Cluster::effective_cores() const {
  return std::max(1.0, physics.remote_efficiency) * gpu_host_cores() +
         physics.remote_efficiency * (cores() - gpu_host_cores());
}

int Cluster::most_gpus_per_node() const {
  int most = 0;
  for (const NodeGroup& group : groups) most = std::max(most, group.gpus);
  return most;
}

}  // namespace sluice::simulator
