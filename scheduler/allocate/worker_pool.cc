#include "scheduler/allocate/worker_pool.h"

#include <algorithm>
#include <bit>

namespace sluice::scheduler {
namespace {

constexpr int kNone = -1;
constexpr int kMovedAhead = 8;  // workers: the next ones mostly go the same way

int lowest(GroupSet groups) { return std::countr_zero(groups); }

}  // namespace

WorkerPool::WorkerPool(const NodeTable& nodes) : nodes_(nodes) {}

std::int64_t WorkerPool::spare(GroupSet groups) const {
  std::int64_t spare = 0;
  for (GroupSet left = groups & nodes_.usable_groups(); left != 0; left &= left - 1) spare += free(lowest(left));
  return spare;
}

std::int64_t WorkerPool::available(GroupSet groups, std::int64_t wanted) {
  groups &= nodes_.usable_groups();
  while (true) {
    std::int64_t available = 0;
    for (GroupSet left = groups; left != 0 && available < wanted; left &= left - 1)
      available += std::max<std::int64_t>(free(lowest(left)), 0);
    if (available >= wanted) return wanted;
    if (!make_room(groups)) return available;
  }
}

void WorkerPool::take(GroupSet groups, std::int64_t millicores) {
  groups &= nodes_.usable_groups();
  if (groups == 0 || millicores <= 0) return;
  take(booked_for(groups), millicores);
}

void WorkerPool::take(Booked& booked, std::int64_t millicores) {
  for (GroupSet left = booked.groups; left != 0 && millicores > 0; left &= left - 1) {
    const std::int64_t part = std::clamp<std::int64_t>(free(lowest(left)), 0, millicores);
    book(booked, lowest(left), part);
    millicores -= part;
  }
  book(booked, lowest(booked.groups), millicores);
}

void WorkerPool::give_back(GroupSet groups, std::int64_t millicores) {
  groups &= nodes_.usable_groups();
  if (groups != 0) give_back(booked_for(groups), millicores);
}

void WorkerPool::give_back(Booked& booked, std::int64_t millicores) {
  for (const bool overfull : {true, false})  // what is held without room goes first
    for (GroupSet left = booked.groups; left != 0 && millicores > 0; left &= left - 1) {
      const int bit = lowest(left);
      const std::int64_t most = overfull ? std::max<std::int64_t>(-free(bit), 0) : millicores;
      const std::int64_t part = std::min({millicores, most, booked.millicores[bit]});
      book(booked, bit, -part);
      millicores -= part;
    }
}

bool WorkerPool::move_to(GroupSet groups, int bit, std::int64_t millicores) {
  groups &= nodes_.usable_groups();
  if (groups == 0) return false;
  Booked& booked = booked_for(groups);
  if (booked.millicores[bit] >= millicores && free(bit) >= 0) return true;
  std::int64_t all = 0;
  for (GroupSet left = groups; left != 0; left &= left - 1) all += booked.millicores[lowest(left)];
  std::int64_t moved = std::min(kMovedAhead * millicores, all);
  give_back(booked, moved);
  const std::int64_t here = available(only(bit), std::max(moved, millicores));
  const bool fits = here >= millicores;
  if (fits) book(booked, bit, here), moved -= here;
  if (moved > 0) take(booked, available(groups, moved));
  return fits;
}

void WorkerPool::settle(GroupSet groups, int bit, std::int64_t millicores) {
  groups &= nodes_.usable_groups();
  used_[bit] += millicores;
  const auto booked = place_of(groups);
  if (booked == booked_.end() || booked->groups != groups) return;
  const std::int64_t here = std::min(booked->millicores[bit], millicores);
  book(*booked, bit, -here);
  give_back(*booked, millicores - here);
}

void WorkerPool::book(Booked& booked, int bit, std::int64_t millicores) {
  booked.millicores[bit] += millicores;
  used_[bit] += millicores;
}

std::vector<WorkerPool::Booked>::iterator WorkerPool::place_of(GroupSet groups) {
  if (latest_ < std::ssize(booked_) && booked_[latest_].groups == groups) return booked_.begin() + latest_;
  const auto place =
      std::lower_bound(booked_.begin(), booked_.end(), groups,
                       [](const Booked& booked, GroupSet looked_for) { return booked.groups < looked_for; });
  latest_ = place - booked_.begin();
  return place;
}

WorkerPool::Booked& WorkerPool::booked_for(GroupSet groups) {
  const auto found = place_of(groups);
  if (found != booked_.end() && found->groups == groups) return *found;
  return *booked_.insert(found, Booked{.groups = groups});
}

// Moves what others hold out of one of the groups, over as many steps as it takes, to a group with something free.
// False: there is no such way.
bool WorkerPool::make_room(GroupSet groups) {
  struct Step {
    int from = kNone;    // the group that is relieved
    int booked = kNone;  // by moving what is booked there
  };
  std::array<Step, kGroups> steps{};
  GroupSet seen = groups;
  std::array<int, kGroups> queue{};
  int queued = 0;
  for (GroupSet left = groups; left != 0; left &= left - 1) queue[queued++] = lowest(left);
  for (int next = 0; next < queued; ++next) {
    const int from = queue[next];
    for (int index = 0; index < std::ssize(booked_); ++index) {
      if (booked_[index].millicores[from] <= 0) continue;
      for (GroupSet left = booked_[index].groups & ~seen; left != 0; left &= left - 1) {
        const int to = lowest(left);
        seen |= only(to);
        steps[to] = {from, index};
        queue[queued++] = to;
        if (free(to) <= 0) continue;
        std::int64_t moved = free(to);
        for (int at = to; steps[at].from != kNone; at = steps[at].from)
          moved = std::min(moved, booked_[steps[at].booked].millicores[steps[at].from]);
        for (int at = to; steps[at].from != kNone; at = steps[at].from) {
          book(booked_[steps[at].booked], steps[at].from, -moved);
          book(booked_[steps[at].booked], at, moved);
        }
        return true;
      }
    }
  }
  return false;
}

}  // namespace sluice::scheduler
