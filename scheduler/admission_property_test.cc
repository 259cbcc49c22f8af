// Admission against a slow and simple one: every set of hosts is tried for every gang.
#include <bit>
#include <map>
#include <random>
#include <set>

#include "scheduler/admission.h"
#include "scheduler/testing/builders.h"
#include "scheduler/testing/properties.h"

namespace sluice::scheduler::testing {
namespace {

// Up to five hosts, some over-full or cordoned, and up to five gangs of distinct ages.
struct Queue {
  explicit Queue(unsigned seed) : random(seed) {
    snapshot.taken_at_seconds = kNowSeconds;
    for (int i = 1 + upto(5); i > 0; --i)
      snapshot.nodes.push_back({.name = "h" + std::to_string(i),
                                .allocatable_millicores = 1000 * upto(33),
                                .requested_by_others_millicores = 1000 * upto(9),
                                .schedulable = upto(6) > 0,
                                .gpus = 8,
                                .gpus_in_use = upto(10)});
    for (int i = 1 + upto(5); i > 0; --i) {
      Job job = MakeJob("j" + std::to_string(i)).not_running().priority(upto(3) / 2).obj();
      job.hosts.clear();
      job.ranks = 1 + upto(6);
      const int gpus_per_rank = std::array{0, 1, 2, 4}[upto(4)];
      job.gpus = job.ranks * gpus_per_rank;
      job.remaining_seconds = 60 * (1 + upto(300));
      job.waiting = Waiting{kNowSeconds - 100 * upto(200) - i, gpus_per_rank, 1000 * upto(4), upto(8) == 0};
      if (upto(2) == 0) job.quota = "team";
      snapshot.jobs.push_back(job);
    }
    snapshot.quotas = {{"team", {}, upto(12)}};
    config.admit = upto(2) == 0 ? Admit::kFirstCome : Admit::kShortestFirst;
  }

  int upto(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  double waited(const Job& job) const { return kNowSeconds - job.waiting->since_seconds; }

  // Smaller goes first.
  double turn(const Job& job) const {
    if (config.admit == Admit::kFirstCome) return -waited(job);
    if (waited(job) >= config.backfill_seconds) return -1e12 - waited(job);
    return *job.remaining_seconds - std::max(waited(job), waited(job) * waited(job) / config.ageing_seconds);
  }

  std::vector<const Job*> in_turn() const {
    std::vector<const Job*> jobs;
    for (const Job& job : snapshot.jobs)
      if (!job.waiting->admitted_elsewhere) jobs.push_back(&job);
    std::sort(jobs.begin(), jobs.end(), [&](const Job* a, const Job* b) {
      return a->priority != b->priority ? a->priority > b->priority : turn(*a) < turn(*b);
    });
    return jobs;
  }

  std::map<JobId, Admission> admitted() const {
    NodeTable nodes(snapshot.nodes, 1000);
    return admit(snapshot, nodes, config);
  }

  std::mt19937 random;
  ClusterSnapshot snapshot;
  Config config;
};

struct Free {
  int gpus;
  std::int64_t millicores;

  int ranks(const Waiting& trainer) const {
    const int by_gpus = trainer.gpus_per_rank == 0 ? 99 : std::max(gpus, 0) / trainer.gpus_per_rank;
    const std::int64_t by_cpu =
        trainer.millicores_per_rank == 0 ? 99 : std::max<std::int64_t>(millicores, 0) / trainer.millicores_per_rank;
    return static_cast<int>(std::min<std::int64_t>(by_gpus, by_cpu));
  }
};

using Hosts = std::map<std::string, Free>;

Hosts schedulable_hosts(const ClusterSnapshot& snapshot) {
  Hosts hosts;
  for (const Node& node : snapshot.nodes)
    if (node.schedulable)
      hosts[node.name] = {std::max(0, node.gpus - node.gpus_in_use),
                          node.allocatable_millicores - node.requested_by_others_millicores};
  return hosts;
}

// The least number of hosts that hold the gang; none when all of them do not.
std::optional<int> least_hosts(const Hosts& hosts, const Job& job) {
  std::optional<int> least;
  for (unsigned set = 1; set < 1U << hosts.size(); ++set) {
    int ranks = 0;
    unsigned bit = 1;
    for (const auto& [name, free] : hosts) {
      if ((set & bit) != 0) ranks += free.ranks(*job.waiting);
      bit <<= 1U;
    }
    if (ranks >= job.ranks && (!least || std::popcount(set) < *least)) least = std::popcount(set);
  }
  return least;
}

TEST_CASE("gangs start in turn, whenever a set of hosts holds them, on no more hosts than they need") {
  property("admission", [](unsigned seed) {
    const Queue queue(seed);
    const auto admitted = queue.admitted();
    Hosts hosts = schedulable_hosts(queue.snapshot);
    int quota_left = *queue.snapshot.quotas[0].gpus;
    bool overtaking = true;
    std::size_t started = 0;
    for (const Job* job : queue.in_turn()) {
      const auto its = admitted.find(job->id);
      const bool may = overtaking && (job->quota.empty() || job->gpus <= quota_left);
      const std::optional<int> least = may ? least_hosts(hosts, *job) : std::nullopt;
      RC_ASSERT((its != admitted.end()) == least.has_value());
      if (!least) {
        overtaking &= !may || queue.waited(*job) < queue.config.backfill_seconds;
        continue;
      }
      ++started;
      const std::vector<std::string>& nodes = its->second.nodes;
      RC_ASSERT(std::ssize(nodes) == job->ranks);
      const std::set<std::string> distinct(nodes.begin(), nodes.end());
      RC_ASSERT(std::ssize(distinct) == *least);
      if (*least == 1)  // the fullest that holds it
        for (const auto& [name, free] : hosts)
          RC_ASSERT(free.ranks(*job->waiting) < job->ranks || free.gpus >= hosts.at(nodes[0]).gpus);
      for (const std::string& node : nodes) {
        hosts.at(node).gpus -= job->waiting->gpus_per_rank;
        hosts.at(node).millicores -= job->waiting->millicores_per_rank;
        RC_ASSERT(job->waiting->gpus_per_rank == 0 || hosts.at(node).gpus >= 0);
        RC_ASSERT(job->waiting->millicores_per_rank == 0 || hosts.at(node).millicores >= 0);
      }
      if (!job->quota.empty()) quota_left -= job->gpus;
    }
    RC_ASSERT(started == admitted.size());
  });
}

TEST_CASE("a host more, a GPU more or a job less in the queue: whoever starts first starts all the same") {
  property("admission, more room", [](unsigned seed) {
    Queue queue(seed);
    RC_PRE(!queue.in_turn().empty());
    const JobId first = queue.in_turn()[0]->id;
    RC_PRE(queue.admitted().contains(first));
    Queue larger = queue;
    switch (seed % 3) {
      case 0: larger.snapshot.nodes.push_back({.name = "more", .allocatable_millicores = 64'000, .gpus = 8}); break;
      case 1: ++larger.snapshot.nodes[0].gpus; break;
      default: std::erase_if(larger.snapshot.jobs, [&](const Job& job) { return job.id > first; });
    }
    RC_ASSERT(larger.admitted().contains(first));
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
