#include "scheduler/allocate/node_ranking.h"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

namespace sluice::scheduler {
namespace {

std::vector<int> kinds_of(const NodeTable& nodes) {
  std::map<std::pair<bool, double>, int> order;
  std::vector<int*> kind_of(nodes.size());
  for (int node = 0; node < nodes.size(); ++node)
    kind_of[node] = &order[{nodes[node].node->gpus > 0, nodes[node].price_per_core_hour}];
  int kind = 0;
  for (auto& entry : order) entry.second = kind++;
  std::vector<int> kinds(nodes.size());
  std::transform(kind_of.begin(), kind_of.end(), kinds.begin(), [](const int* of) { return *of; });
  return kinds;
}

}  // namespace

NodeRanking::NodeRanking(const NodeTable& nodes) : nodes_(nodes), kinds_(kinds_of(nodes)), places_(nodes.size()) {
  std::array<std::vector<Standing>, kGroups> standings;
  for (int node = 0; node < nodes.size(); ++node) {
    Group& group = groups_[nodes.bit(node)];
    places_[node] = static_cast<int>(group.nodes.size());
    group.nodes.push_back(node);
    const std::int64_t room = nodes[node].schedulable ? nodes[node].free_for_workers() : 0;
    standings[nodes.bit(node)].push_back(standing_of(node, room));
  }
  for (int bit = 0; bit < kGroups; ++bit) groups_[bit].tournament = Tournament(std::move(standings[bit]));
}

Standing NodeRanking::standing_of(int node, std::int64_t room) const {
  if (room <= 0) return {};
  return {Standing::of(std::int64_t{-kinds_[node]}), Standing::of(room)};
}

NodeRanking::Group* NodeRanking::best_of(GroupSet groups) {
  Group* best = nullptr;
  for (GroupSet left = groups & nodes_.usable_groups(); left != 0; left &= left - 1) {
    Group& group = groups_[std::countr_zero(left)];
    const Standing& standing = group.best_standing();
    if (standing == Standing{}) continue;
    const bool is_better = best == nullptr || best->best_standing() < standing ||
                           (best->best_standing() == standing && group.best() < best->best());
    if (is_better) best = &group;
  }
  return best;
}

int NodeRanking::take_near(int kind, std::int64_t millicores, GroupSet groups, const SuitsFunction& suits,
                           std::span<const int> near) const {
  std::vector<int> left;
  for (const int node : near) {
    const bool is_open = nodes_[node].schedulable && (groups & only(nodes_.bit(node))) != 0;
    if (kinds_[node] == kind && is_open && nodes_[node].free_for_workers() >= millicores) left.push_back(node);
  }
  while (!left.empty()) {  // the first one takes the worker, but for memory, networks, spread and the like
    const auto emptiest = std::max_element(left.begin(), left.end(), [this](int one, int other) {
      return nodes_[one].free_for_workers() < nodes_[other].free_for_workers();
    });
    if (suits(*emptiest) == Suits::kYes) return *emptiest;
    left.erase(emptiest);
  }
  return kNowhere;
}

int NodeRanking::take(std::int64_t millicores, GroupSet groups, const SuitsFunction& suits, std::span<const int> near) {
  passed_.clear();
  int found = kNowhere;
  int kind = kNowhere;  // whose near nodes were asked last
  while (found == kNowhere) {
    const Group* group = best_of(groups);
    if (group == nullptr) break;
    const int node = group->best();
    if (!near.empty() && std::exchange(kind, kinds_[node]) != kinds_[node]) {
      found = take_near(kind, millicores, groups, suits, near);
      if (found != kNowhere) set(found, standing_of(found, nodes_[found].free_for_workers() - millicores));
      continue;
    }
    std::int64_t room = nodes_[node].free_for_workers();
    if (const Standing standing = standing_of(node, room); standing == group->best_standing()) {
      const Suits verdict = room >= millicores ? suits(node) : Suits::kNo;
      if (verdict == Suits::kYes) {
        found = node;
        room -= millicores;
      } else {
        passed_.emplace_back(node, standing);
        if (verdict == Suits::kNoneOfItsGroup) groups &= ~only(nodes_.bit(node));
        room = 0;
      }
    }
    set(node, standing_of(node, room));
  }
  for (const auto& [node, standing] : passed_) set(node, standing);
  return found;
}

}  // namespace sluice::scheduler
