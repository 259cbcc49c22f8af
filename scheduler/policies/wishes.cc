#include "scheduler/policies/wishes.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "scheduler/admission.h"
#include "scheduler/config.h"
#include "scheduler/node_table.h"

namespace sluice::scheduler {
namespace {

// A job on its way to its plan.
struct Seat {
  const Job* job = nullptr;
  const Wish* wish = nullptr;
  int wanted = 0;
  std::vector<const Worker*> live;  // the one to keep longest first
  std::vector<LocalCpu> local;
  int granted = 0;
  std::vector<std::string> victims;
  std::vector<std::string> new_worker_nodes;
  bool out_of_room = false;
};

// The reverse of the order in which a ReplicaSet scales in.
std::vector<const Worker*> in_order_of_keeping(const Job& job) {
  std::vector<const Worker*> live;
  for (const Worker& worker : job.workers) {
    if (!worker.draining) live.push_back(&worker);
  }
  const auto rank = [](const Worker& worker) {
    return std::make_tuple(worker.node.empty(), !worker.ready,
                           worker.ready ? worker.ready_since_seconds : worker.created_at_seconds);
  };
  std::sort(live.begin(), live.end(), [&](const Worker* a, const Worker* b) {
    const auto of_a = rank(*a), of_b = rank(*b);
    return of_a != of_b ? of_a < of_b : a->name < b->name;
  });
  return live;
}

int wanted_workers(const Job& job, const Wish& wish) {
  if (!job.running) return 0;
  if (job.mode != Mode::kAuto) return job.allocated_workers;
  if (job.placement == Placement::kLocal) return 0;
  return std::clamp(wish.workers, job.min_workers, std::max(job.min_workers, job.max_workers));
}

// CPU of the nodes while it is given away. Nodes are known by their position in the order of names.
class Stock {
 public:
  explicit Stock(const ClusterSnapshot& snapshot) {
    for (const Node& node : snapshot.nodes) nodes_.push_back({&node, NodeIndex::usable_millicores(node)});
    std::sort(nodes_.begin(), nodes_.end(), [](const Entry& a, const Entry& b) { return a.node->name < b.node->name; });
    for (std::size_t i = 0; i < nodes_.size(); ++i) index_[nodes_[i].node->name] = i;
    for (const Quota& quota : snapshot.quotas) {
      if (quota.worker_millicores) quota_left_[quota.name] = *quota.worker_millicores;
    }
  }

  std::int64_t free(const std::string& node) const {
    const auto found = index_.find(node);
    return found == index_.end() ? 0 : nodes_[found->second].free;
  }

  bool take(const std::string& node, std::int64_t millicores) {
    const auto found = index_.find(node);
    if (found == index_.end() || nodes_[found->second].free < millicores) return false;
    nodes_[found->second].free -= millicores;
    return true;
  }

  bool within_quota(const Job& job) const {
    const auto quota = quota_left_.find(job.quota);
    return quota == quota_left_.end() || quota->second >= job.worker_millicores;
  }

  void charge(const Job& job) {
    const auto quota = quota_left_.find(job.quota);
    if (quota != quota_left_.end()) quota->second -= job.worker_millicores;
  }

  // From here on nodes are only taken from through place().
  void rank(WorkerNodes worker_nodes) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = *nodes_[i].node;
      const bool allowed = worker_nodes == WorkerNodes::kAll || node.gpus == 0;
      if (node.schedulable && allowed) ranking_.insert(rank_of(i));
    }
  }

  // Nullptr: no node has room for a new worker.
  const std::string* place(std::int64_t millicores) {
    for (const bool has_gpus : {false, true}) {
      const auto roomiest = ranking_.lower_bound({has_gpus, std::numeric_limits<std::int64_t>::min(), 0});
      if (roomiest == ranking_.end() || -std::get<1>(*roomiest) < millicores) continue;
      const std::size_t i = std::get<2>(*roomiest);
      ranking_.erase(roomiest);
      nodes_[i].free -= millicores;
      ranking_.insert(rank_of(i));
      return &nodes_[i].node->name;
    }
    return nullptr;
  }

  std::int64_t capacity() const {
    return sum([](const Entry& e) { return NodeIndex::usable_millicores(*e.node); });
  }
  std::int64_t left() const {
    return sum([](const Entry& e) { return e.free; });
  }

 private:
  struct Entry {
    const Node* node = nullptr;
    std::int64_t free = 0;
  };
  using Rank = std::tuple<bool, std::int64_t, std::size_t>;

  Rank rank_of(std::size_t i) const {
    const Entry& entry = nodes_[i];
    return {entry.node->gpus > 0, -(entry.free - entry.node->guarded_millicores), i};
  }
  template <typename Figure>
  std::int64_t sum(Figure figure) const {
    return std::accumulate(nodes_.begin(), nodes_.end(), std::int64_t{0},
                           [&](std::int64_t total, const Entry& entry) { return total + figure(entry); });
  }

  std::vector<Entry> nodes_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::map<std::string, std::int64_t, std::less<>> quota_left_;
  std::set<Rank> ranking_;
};

std::vector<Seat> seats_in_order_of_id(const ClusterSnapshot& snapshot, const std::vector<Wish>& wishes) {
  std::vector<Seat> seats(snapshot.jobs.size());
  for (std::size_t i = 0; i < seats.size(); ++i) {
    seats[i].job = &snapshot.jobs[i];
    seats[i].wish = &wishes[i];
    seats[i].wanted = wanted_workers(snapshot.jobs[i], wishes[i]);
    seats[i].live = in_order_of_keeping(snapshot.jobs[i]);
  }
  std::sort(seats.begin(), seats.end(), [](const Seat& a, const Seat& b) { return a.job->id < b.job->id; });
  return seats;
}

// The trainers that start now. The CPU that their pods ask for is theirs from now on.
std::map<JobId, Admission> admit_trainers(const ClusterSnapshot& snapshot, Stock& stock) {
  NodeTable table(snapshot.nodes, 1);
  std::map<JobId, Admission> admitted = admit(snapshot, table, Config{});
  for (const Job& job : snapshot.jobs) {
    const auto start = admitted.find(job.id);
    if (start == admitted.end()) continue;
    for (const std::string& node : start->second.nodes) {
      stock.take(node, std::min(stock.free(node), job.waiting->millicores_per_rank));
    }
  }
  return admitted;
}

// Feeders first. A wish beyond its node's CPU is cut to what is left, in the order of jobs.
void take_local(Seat& seat, const NodeIndex& nodes, Stock& stock) {
  if (!seat.job->running || !seat.job->local_adjustable) return;
  seat.local = seat.wish->local ? *seat.wish->local : gpu_proportional(*seat.job, nodes);
  for (LocalCpu& local : seat.local) {
    if (nodes.find(local.node) == nullptr) continue;
    local.request_millicores = std::min(local.request_millicores, stock.free(local.node));
    local.limit_millicores = std::max(local.limit_millicores, local.request_millicores);
    stock.take(local.node, local.request_millicores);
  }
}

void keep_workers(Seat& seat, Stock& stock) {
  int kept_pending = 0;
  bool evicted = false;
  for (const Worker* worker : seat.live) {
    const bool wanted = seat.granted + kept_pending < seat.wanted;
    if (wanted && worker->node.empty()) {
      ++kept_pending;  // stands in for a new one
    } else if (wanted && stock.take(worker->node, seat.job->worker_millicores)) {
      stock.charge(*seat.job);
      ++seat.granted;
    } else {
      seat.victims.push_back(worker->name);
      evicted |= wanted;
    }
  }
  // A plan cannot stop a worker and start its successor at once; the successor comes with the next decision.
  if (evicted) seat.wanted = seat.granted + kept_pending;
}

bool add_worker(Seat& seat, Stock& stock) {
  if (seat.granted >= seat.wanted || seat.out_of_room) return false;
  const std::string* node = stock.within_quota(*seat.job) ? stock.place(seat.job->worker_millicores) : nullptr;
  if (node == nullptr) return seat.out_of_room = true, false;
  stock.charge(*seat.job);
  seat.new_worker_nodes.push_back(*node);
  ++seat.granted;
  return true;
}

// One worker for each seat in turn, or for each all that it wants, until nothing fits any more.
void add_in_turns(std::vector<Seat>& seats, Stock& stock, bool one_each) {
  bool placed = true;
  while (placed) {
    placed = false;
    for (Seat& seat : seats) {
      while (add_worker(seat, stock)) {
        placed = true;
        if (one_each) break;
      }
    }
  }
}

Reason reason_of(const Seat& seat) {
  const Job& job = *seat.job;
  if (!job.running) return Reason::kNotRunning;
  if (job.mode == Mode::kOff) return Reason::kModeOff;
  if (job.placement == Placement::kLocal) return Reason::kPlacementLocal;
  if (seat.granted < seat.wanted) return Reason::kCpu;
  if (!job.observation.measurement) return Reason::kNoMetrics;
  return Reason::kNeedMet;
}

// Pending workers have no place of their own: those that no place was found for go, too. The worst to keep goes first,
// and the first places are for those that are there already and wait for one.
void name_victims(const Seat& seat, JobPlan& plan) {
  plan.new_worker_nodes = seat.new_worker_nodes;
  const bool all_stay = seat.victims.empty() && (seat.live.empty() || !seat.live.back()->node.empty());
  if (all_stay) return;
  auto surplus = std::ssize(seat.live) - std::ssize(seat.victims) - seat.granted;
  std::ptrdiff_t pending = 0;
  for (auto worker = seat.live.rbegin(); worker != seat.live.rend(); ++worker) {
    const std::string& name = (*worker)->name;
    const bool evicted = std::count(seat.victims.begin(), seat.victims.end(), name) > 0;
    const bool unplaced = !evicted && (*worker)->node.empty() && surplus > 0;
    if (evicted || unplaced) plan.victims.push_back(name);
    if (unplaced) --surplus;
    if (!evicted && !unplaced && (*worker)->node.empty()) ++pending;
  }
  plan.new_worker_nodes.erase(plan.new_worker_nodes.begin(), plan.new_worker_nodes.begin() + pending);
}

JobPlan plan_for(const Seat& seat) {
  JobPlan plan;
  plan.id = seat.job->id;
  plan.workers = seat.granted;
  plan.recommended = plan.workers;
  name_victims(seat, plan);
  plan.local = seat.local;
  plan.estimate = seat.wish->estimate;
  plan.memory = seat.wish->memory;
  plan.reason = reason_of(seat);
  plan.explanation = seat.wish->explanation;
  return plan;
}

}  // namespace

NodeIndex::NodeIndex(const std::vector<Node>& nodes) {
  for (const Node& node : nodes) nodes_[node.name] = &node;
}

const Node* NodeIndex::find(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second;
}

std::int64_t NodeIndex::usable_millicores(const Node& node) {
  return std::max<std::int64_t>(0, node.allocatable_millicores - node.requested_by_others_millicores);
}

std::int64_t NodeIndex::share_millicores(const TrainerHost& host) const {
  const Node* node = find(host.node);
  if (node == nullptr || node->gpus == 0) return host.request_millicores;
  return usable_millicores(*node) * host.gpus / node->gpus;
}

std::vector<LocalCpu> gpu_proportional(const Job& job, const NodeIndex& nodes) {
  std::vector<LocalCpu> local;
  for (const TrainerHost& host : job.hosts) {
    const std::int64_t share = nodes.share_millicores(host);
    local.push_back({host.node, share, share});
  }
  return local;
}

Plan fulfil(const ClusterSnapshot& snapshot, const std::vector<Wish>& wishes, Turns turns, WorkerNodes worker_nodes) {
  const NodeIndex nodes(snapshot.nodes);
  Stock stock(snapshot);
  std::vector<Seat> seats = seats_in_order_of_id(snapshot, wishes);

  // 1. Trainers that start: first come first served with backfill, the same for all.
  std::map<JobId, Admission> admitted = admit_trainers(snapshot, stock);
  // 2. What is guaranteed: the feeders' requests.
  for (Seat& seat : seats) take_local(seat, nodes, stock);
  // 3. What is there: workers keep their nodes where feeders leave them room.
  for (Seat& seat : seats) keep_workers(seat, stock);
  // 4. What is new.
  stock.rank(worker_nodes);
  add_in_turns(seats, stock, turns == Turns::kOneEach);

  Plan plan;
  plan.capacity_millicores = stock.capacity();
  plan.granted_millicores = stock.capacity() - stock.left();
  for (const Seat& seat : seats) {
    plan.jobs.push_back(plan_for(seat));
    plan.jobs.back().admission = std::move(admitted[seat.job->id]);
  }
  return plan;
}

}  // namespace sluice::scheduler
