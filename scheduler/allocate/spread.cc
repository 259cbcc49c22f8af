#include "scheduler/allocate/spread.h"

#include <algorithm>
#include <limits>

namespace sluice::scheduler {
namespace {

int domain_of(const Node& node, const SpreadRule& rule) {
  return rule.topology < std::ssize(node.domains) ? node.domains[rule.topology] : kNoDomain;
}

bool counts(const SpreadRule& rule, int domain) {
  return domain < std::ssize(rule.counted_domains) && rule.counted_domains[domain];
}

// REQUIRES: a domain counts, `workers` has all that do, and none has fewer than `enough`.
int least_of(const SpreadRule& rule, const std::vector<int>& workers, int enough) {
  int least = std::numeric_limits<int>::max();
  for (int domain = 0; domain < std::ssize(rule.counted_domains) && least > enough; ++domain)
    if (counts(rule, domain)) least = std::min(least, workers[domain]);
  return least;
}

}  // namespace

Spread::Spread(const Job& job) {
  for (const SpreadRule& rule : job.spread) counts_.push_back({&rule, std::vector<int>(rule.counted_domains.size())});
}

bool Spread::admits(const Node& node) const {
  return std::all_of(counts_.begin(), counts_.end(), [&](const Count& count) {
    const int domain = domain_of(node, *count.rule);
    if (domain == kNoDomain) return !count.rule->closed_outside;
    const int there = domain < std::ssize(count.workers) ? count.workers[domain] : 0;
    return there + 1 - count.least <= count.rule->most_ahead;
  });
}

void Spread::add(const Node& node, int workers) {
  for (Count& count : counts_) {
    const int domain = domain_of(node, *count.rule);
    if (domain == kNoDomain) continue;
    if (domain >= std::ssize(count.workers)) count.workers.resize(domain + 1);
    const bool was_least = count.workers[domain] == count.least;
    count.workers[domain] += workers;
    if (!counts(*count.rule, domain)) continue;
    if (workers < 0)
      count.least = std::min(count.least, count.workers[domain]);
    else if (was_least)
      count.least = least_of(*count.rule, count.workers, count.least);
  }
}

}  // namespace sluice::scheduler
