#include "operator/observe/node_groups.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sluice::observe {

int JobRules::add(const api::NodeRules& rules) {
  const auto [entry, is_new] = positions_.try_emplace(rules.text(), static_cast<int>(all_.size()));
  if (is_new) all_.push_back(&rules);
  return entry->second;
}

std::vector<std::vector<bool>> NodeGroups::divide(const JobRules& rules, const kube::Store::Objects& objects,
                                                  std::vector<scheduler::Node>& nodes) {
  std::vector<std::string> texts;
  for (const api::NodeRules* rule : rules.all()) texts.push_back(rule->text());
  if (texts != texts_) known_.clear();
  texts_ = std::move(texts);
  std::erase_if(known_, [&](const auto& entry) { return !objects.contains(entry.first); });

  std::map<std::vector<bool>, int> groups;
  auto seen = nodes.begin();
  for (const auto& [key, object] : objects) {
    Known& known = known_[key];
    if (known.node != object) {
      known = {object, {}};
      for (const api::NodeRules* rule : rules.all()) known.admitted.push_back(rule->admit(api::Node(*object)));
    }
    seen++->group = groups.try_emplace(known.admitted, static_cast<int>(groups.size())).first->second;
  }

  std::vector<std::vector<bool>> closed(texts_.size(), std::vector<bool>(groups.size()));
  for (const auto& [admitted, group] : groups)
    for (std::size_t rule = 0; rule < admitted.size(); ++rule) closed[rule][group] = !admitted[rule];
  return closed;
}

}  // namespace sluice::observe
