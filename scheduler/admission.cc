#include "scheduler/admission.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

namespace sluice::scheduler {
namespace {

struct Free {
  int node = 0;
  int gpus = 0;
  std::int64_t millicores = 0;  // that neither other pods nor the running trainers' floors need, nor workers that stay
};

class Queue {
 public:
  Queue(const ClusterSnapshot& snapshot, NodeTable& nodes, const Config& config)
      : snapshot_(snapshot), nodes_(nodes), config_(config) {
    for (const Job& job : snapshot.jobs)
      if (job.waiting && !job.waiting->admitted_elsewhere && !job.running) waiting_.push_back(&job);
  }

  std::map<JobId, Admission> run() {
    std::map<JobId, Admission> admitted;
    if (waiting_.empty()) return admitted;
    sort();
    find_free();
    bool overtaking = true;  // as long as nobody has waited too long
    for (const Job* job : waiting_) {
      if (!overtaking) break;
      if (within_quota(*job)) {
        if (auto nodes = fit(*job)) {
          admitted[job->id] = {true, *std::move(nodes)};
          continue;
        }
        const double waited = snapshot_.taken_at_seconds - job->waiting->since_seconds;
        overtaking = waited < config_.backfill_seconds;
      }
    }
    return admitted;
  }

 private:
  void sort() {
    double known = 0, sum = 0;
    for (const Job* job : waiting_)
      if (job->remaining_seconds) known += 1, sum += *job->remaining_seconds;
    const double typical = known > 0 ? sum / known : 0;
    const auto key = [&](const Job* job) {
      const double since = job->waiting->since_seconds;
      if (config_.admit == Admit::kFirstCome) return std::make_tuple(-job->priority, since, job->id);
      const double waited = snapshot_.taken_at_seconds - since;
      // Who has waited too long is not overtaken by anybody, however short.
      if (waited >= config_.backfill_seconds) return std::make_tuple(-job->priority, -waited * 1e9, job->id);
      return std::make_tuple(-job->priority, job->remaining_seconds.value_or(typical) - ageing(waited), job->id);
    };
    std::sort(waiting_.begin(), waiting_.end(), [&](const Job* a, const Job* b) { return key(a) < key(b); });
  }

  // Waiting for ageing_seconds makes up for that much remaining time, and faster from then on.
  double ageing(double waited_seconds) const {
    return waited_seconds * std::max(1.0, waited_seconds / std::max(config_.ageing_seconds, 1.0));
  }

  // Running trainers keep at least a core per GPU, and at most what they request now; all of it where the plan leaves
  // their feeders alone, or where workers stand that do not make way for them.
  void find_free() {
    for (int node = 0; node < nodes_.size(); ++node) {
      const NodeState& state = nodes_[node];
      const int gpus = state.node->gpus - state.node->gpus_in_use;
      free_.push_back({node, std::max(gpus, 0), state.free_for_local()});
    }
    for (const Job& job : snapshot_.jobs) {
      if (job.running && !job.quota.empty()) quota_gpus_[job.quota] += job.gpus;
      if (!job.local_adjustable) continue;
      for (const TrainerHost& host : job.hosts) {
        const int node = nodes_.index_of(host.node);
        if (node == kNowhere) continue;
        const bool fixed = job.mode != Mode::kAuto || !job.running || nodes_[node].staying_millicores > 0;
        const std::int64_t least = fixed ? host.request_millicores : 1000 * std::max(host.gpus, 1);
        free_[node].millicores -= std::min(least, host.request_millicores);
      }
    }
  }

  bool within_quota(const Job& job) {
    if (job.quota.empty()) return true;
    for (const Quota& quota : snapshot_.quotas)
      if (quota.name == job.quota) return !quota.gpus || quota_gpus_[job.quota] + job.gpus <= *quota.gpus;
    return true;
  }

  // How many ranks of the job the node could hold.
  int ranks_on(const Free& free, const Waiting& trainer, int ranks) const {
    if (!nodes_[free.node].node->schedulable) return 0;
    int fits = ranks;
    if (trainer.gpus_per_rank > 0) fits = std::min(fits, free.gpus / trainer.gpus_per_rank);
    if (trainer.millicores_per_rank > 0)
      fits = std::min<int>(fits,
                           static_cast<int>(std::max<std::int64_t>(free.millicores, 0) / trainer.millicores_per_rank));
    return fits;
  }

  std::optional<std::vector<std::string>> fit(const Job& job) {
    const Waiting& trainer = *job.waiting;
    const int ranks = std::max(job.ranks, 1);
    std::vector<std::pair<int, int>> chosen;  // index of free_, ranks
    int best = kNowhere;
    for (int i = 0; i < std::ssize(free_); ++i)
      if (ranks_on(free_[i], trainer, ranks) >= ranks && (best == kNowhere || free_[i].gpus < free_[best].gpus))
        best = i;
    if (best != kNowhere) {
      chosen.emplace_back(best, ranks);
    } else {
      std::vector<int> order(free_.size());
      for (int i = 0; i < std::ssize(order); ++i) order[i] = i;
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return ranks_on(free_[a], trainer, ranks) > ranks_on(free_[b], trainer, ranks);
      });
      int left = ranks;
      for (int i = 0; i < std::ssize(order) && left > 0; ++i) {
        const int here = ranks_on(free_[order[i]], trainer, left);
        if (here > 0) chosen.emplace_back(order[i], here);
        left -= here;
      }
      if (left > 0) return std::nullopt;
    }
    return take(job, chosen);
  }

  std::vector<std::string> take(const Job& job, const std::vector<std::pair<int, int>>& chosen) {
    std::vector<std::string> names;
    for (const auto& [at, ranks] : chosen) {
      Free& free = free_[at];
      free.gpus -= ranks * job.waiting->gpus_per_rank;
      free.millicores -= ranks * job.waiting->millicores_per_rank;
      nodes_.reserve(free.node, ranks * job.waiting->millicores_per_rank);
      names.insert(names.end(), ranks, std::string(nodes_.name(free.node)));
    }
    if (!job.quota.empty()) quota_gpus_[job.quota] += job.gpus;
    return names;
  }

  const ClusterSnapshot& snapshot_;
  NodeTable& nodes_;
  const Config& config_;
  std::vector<const Job*> waiting_;
  std::vector<Free> free_;
  std::map<std::string, int> quota_gpus_;
};

}  // namespace

std::map<JobId, Admission> admit(const ClusterSnapshot& snapshot, NodeTable& nodes, const Config& config) {
  return Queue(snapshot, nodes, config).run();
}

}  // namespace sluice::scheduler
