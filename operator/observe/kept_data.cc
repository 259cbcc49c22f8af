#include "operator/observe/kept_data.h"

#include <algorithm>

#include "src/base/checksum.h"
#include "src/base/job_number.h"

namespace sluice::observe {
namespace {

std::string label_of(const prom::Labels& labels, const std::string& name) {
  const auto found = labels.find(name);
  return found == labels.end() ? "" : found->second;
}

// As the caches write it.
std::string number_of(const scheduler::JobId& job) {
  return hexadecimal(sluice::number_of(job.job_namespace, job_number(job.job_namespace, job.name)));
}

}  // namespace

KeptByCaches::KeptByCaches(const prom::InstantVector& answer, const std::string& namespace_label,
                           const std::string& own_namespace) {
  for (const auto& [labels, value, timestamp_seconds] : answer.samples) {
    const std::string node = label_of(labels, "cache_node"), number = label_of(labels, "asker");
    if (label_of(labels, namespace_label) != own_namespace || node.empty() || value < 0) continue;
    Asker& asker = askers_[number];
    double& bytes = asker.bytes_by_node[node];
    bytes = std::max(bytes, value);
    const std::string data_set = label_of(labels, "data_set");
    if (data_set.empty()) continue;
    asker.data_sets.insert(data_set);
    by_data_set_[data_set].insert(number);
  }
}

std::vector<scheduler::KeptData> KeptByCaches::of(const scheduler::JobId& job) const {
  const auto own = askers_.find(number_of(job));
  if (own == askers_.end()) return {};
  std::set<std::string> alike = {own->first};
  for (const std::string& data_set : own->second.data_sets) alike.merge(std::set(by_data_set_.at(data_set)));
  std::map<std::string, double> bytes_by_node;
  for (const std::string& number : alike)
    for (const auto& [node, bytes] : askers_.at(number).bytes_by_node)
      bytes_by_node[node] = std::max(bytes_by_node[node], bytes);
  std::vector<scheduler::KeptData> kept;
  kept.reserve(bytes_by_node.size());
  for (const auto& [node, bytes] : bytes_by_node) kept.push_back({node, bytes});
  return kept;
}

}  // namespace sluice::observe
