#include "operator/observe/spread_domains.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

namespace sluice::observe {
namespace {

class Domains {
 public:
  Domains(const kube::Store::Objects& objects, std::vector<scheduler::Node>& seen) : objects_(objects), seen_(seen) {}

  // The same for terms and rules that are written alike.
  const scheduler::SpreadRule& rule_of(const api::SpreadTerm& term, const api::NodeRules& rules) {
    const auto [entry, is_new] = rules_.try_emplace(std::tuple(term, rules.text()));
    if (is_new) entry->second = make(term, rules);
    return entry->second;
  }

 private:
  scheduler::SpreadRule make(const api::SpreadTerm& term, const api::NodeRules& rules) {
    scheduler::SpreadRule rule{.topology = topology_of(term.topology_key),
                               .most_ahead = term.most_ahead,
                               .counted_domains = {},
                               .closed_outside = !term.apart};
    if (term.apart) return rule;
    auto seen = seen_.begin();
    for (const auto& [key, object] : objects_) {
      const int domain = (seen++)->domains[rule.topology];
      const api::Node node(*object);
      if (domain == scheduler::kNoDomain || (term.by_affinity && !rules.select(node)) ||
          (term.by_taints && !rules.tolerate(node)))
        continue;
      if (domain >= std::ssize(rule.counted_domains)) rule.counted_domains.resize(domain + 1);
      rule.counted_domains[domain] = true;
    }
    if (std::count(rule.counted_domains.begin(), rule.counted_domains.end(), true) < term.least_domains)
      rule.counted_domains.clear();
    return rule;
  }

  int topology_of(const std::string& key) {
    const auto [entry, is_new] = topologies_.try_emplace(key, static_cast<int>(topologies_.size()));
    if (!is_new) return entry->second;
    std::map<std::string, int> domains;
    auto seen = seen_.begin();
    for (const auto& [node_key, object] : objects_) {
      const auto value = api::Node(*object).label_if_any(key);
      seen++->domains.push_back(value ? domains.try_emplace(*value, static_cast<int>(domains.size())).first->second
                                      : scheduler::kNoDomain);
    }
    return entry->second;
  }

  const kube::Store::Objects& objects_;
  std::vector<scheduler::Node>& seen_;
  std::map<std::string, int> topologies_;  // by the key of their label
  std::map<std::tuple<api::SpreadTerm, std::string>, scheduler::SpreadRule> rules_;
};

}  // namespace

void set_spread(const std::vector<PodSpread>& spread, const kube::Store::Objects& objects,
                std::vector<scheduler::Node>& seen, std::vector<scheduler::Job>& jobs) {
  Domains domains(objects, seen);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    for (const api::SpreadTerm& term : spread[i].terms)
      jobs[i].spread.push_back(domains.rule_of(term, *spread[i].nodes));
}

}  // namespace sluice::observe
