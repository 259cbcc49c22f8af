#include "scheduler/simulator/policies/requests.h"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <queue>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::scheduler {
namespace {

// A job on its way to its plan.
struct Seat {
  const Job* job = nullptr;
  const Request* request = nullptr;
  int wanted = 0;
  std::vector<const Worker*> live;  // the one to keep longest first
  std::vector<LocalCpu> local;
  int granted = 0;
  std::vector<std::string> victims;
  std::vector<std::string> new_worker_nodes;
  std::optional<Reason> refused;  // why the last worker that it asked for was not placed
};

// The reverse of the order in which a ReplicaSet scales in.
std::vector<const Worker*> in_order_of_keeping(const Job& job) {
  struct Key {  // in the order in which it counts; names differ
    bool unbound = false;
    bool starting = false;
    double since_seconds = 0;
    std::string_view name;
    const Worker* worker = nullptr;

    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> keys;
  keys.reserve(job.workers.size());
  for (const Worker& worker : job.workers) {
    if (worker.draining) continue;
    const double since_seconds = worker.ready ? worker.ready_since_seconds : worker.created_at_seconds;
    keys.push_back({worker.node.empty(), !worker.ready, since_seconds, worker.name, &worker});
  }
  // Mostly they stand in the order in which they were started.
  if (!std::is_sorted(keys.begin(), keys.end())) std::sort(keys.begin(), keys.end());
  std::vector<const Worker*> live(keys.size());
  std::transform(keys.begin(), keys.end(), live.begin(), [](const Key& key) { return key.worker; });
  return live;
}

int requested_workers(const Job& job, const Request& request) {
  if (job.mode != Mode::kAuto) return job.allocated_workers;
  if (!job.running || job.placement == Placement::kLocal) return 0;
  return std::clamp(request.workers, job.min_workers, std::max(job.min_workers, job.max_workers));
}

// CPU of the nodes, and the rest of quotas, while it is given away.
class Stock {
 public:
  Stock(const NodeIndex& nodes, const std::vector<Quota>& quotas) : nodes_(nodes), free_(nodes.size()) {
    for (int node = 0; node < nodes.size(); ++node) free_[node] = NodeIndex::usable_millicores(nodes[node]);
    capacity_ = left();
    for (const Quota& quota : quotas) {
      if (quota.worker_millicores) quota_left_[quota.name] = *quota.worker_millicores;
    }
  }

  const NodeIndex& nodes() const { return nodes_; }
  std::int64_t free(int node) const { return free_[node]; }

  // False: the snapshot has no such node, or there is no room on it.
  bool take(int node, std::int64_t millicores) {
    if (node == kNowhere || free_[node] < millicores) return false;
    free_[node] -= millicores;
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
    for (int node = 0; node < nodes_.size(); ++node) {
      const bool has_gpus = nodes_[node].gpus > 0;
      const bool allowed = worker_nodes == WorkerNodes::kAll || !has_gpus;
      if (nodes_[node].schedulable && allowed) (has_gpus ? gpu_nodes_ : cpu_nodes_).push(room_of(node));
    }
  }

  // The node that a new worker goes to; kNowhere: none has room for it.
  int place(std::int64_t millicores) {
    for (auto* ranking : {&cpu_nodes_, &gpu_nodes_}) {
      if (ranking->empty() || ranking->top().millicores < millicores) continue;
      const int node = ranking->top().node;
      ranking->pop();
      free_[node] -= millicores;
      ranking->push(room_of(node));
      return node;
    }
    return kNowhere;
  }

  std::int64_t capacity() const { return capacity_; }
  std::int64_t left() const { return std::accumulate(free_.begin(), free_.end(), std::int64_t{0}); }

 private:
  // For new workers. The roomiest is on top of a queue, the first by name of several.
  struct Room {
    std::int64_t millicores = 0;
    int node = 0;

    bool operator<(const Room& other) const {
      return millicores != other.millicores ? millicores < other.millicores : node > other.node;
    }
  };

  Room room_of(int node) const { return {free_[node], node}; }

  const NodeIndex& nodes_;
  std::vector<std::int64_t> free_;  // by node
  std::int64_t capacity_ = 0;
  std::map<std::string, std::int64_t, std::less<>> quota_left_;
  std::priority_queue<Room> cpu_nodes_, gpu_nodes_;
};

std::vector<Seat> seats_in_order_of_id(const ClusterSnapshot& snapshot, const std::vector<Request>& requests) {
  std::vector<Seat> seats(snapshot.jobs.size());
  for (std::size_t i = 0; i < seats.size(); ++i) {
    seats[i].job = &snapshot.jobs[i];
    seats[i].request = &requests[i];
    seats[i].wanted = requested_workers(snapshot.jobs[i], requests[i]);
    seats[i].live = in_order_of_keeping(snapshot.jobs[i]);
  }
  const auto before = [](const Seat& a, const Seat& b) { return a.job->id < b.job->id; };
  if (!std::is_sorted(seats.begin(), seats.end(), before)) std::sort(seats.begin(), seats.end(), before);
  return seats;
}

// Feeders first. A request beyond its node's CPU is cut to the rest, in the order of jobs.
void take_local(Seat& seat, Stock& stock) {
  if (!seat.job->running || !seat.job->local_adjustable) return;
  seat.local = seat.request->local ? *seat.request->local : gpu_proportional(*seat.job, stock.nodes());
  for (LocalCpu& local : seat.local) {
    const int node = stock.nodes().index_of(local.node);
    if (node == kNowhere) continue;
    local.request_millicores = std::min(local.request_millicores, stock.free(node));
    local.limit_millicores = std::max(local.limit_millicores, local.request_millicores);
    stock.take(node, local.request_millicores);
  }
}

void keep_workers(Seat& seat, Stock& stock) {
  int kept_pending = 0;
  bool evicted = false;
  for (const Worker* worker : seat.live) {
    const bool wanted = seat.granted + kept_pending < seat.wanted;
    if (wanted && worker->node.empty()) {
      ++kept_pending;  // stands in for a new one
    } else if (wanted && stock.take(stock.nodes().index_of(worker->node), seat.job->worker_millicores)) {
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
  if (seat.granted >= seat.wanted || seat.refused) return false;
  const bool within_quota = stock.within_quota(*seat.job);
  const int node = within_quota ? stock.place(seat.job->worker_millicores) : kNowhere;
  if (node == kNowhere) return seat.refused = within_quota ? Reason::kCpu : Reason::kQuota, false;
  stock.charge(*seat.job);
  seat.new_worker_nodes.push_back(stock.nodes()[node].name);
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
  if (job.mode == Mode::kOff) return Reason::kModeOff;
  if (!job.running) return Reason::kNotRunning;
  if (job.placement == Placement::kLocal) return Reason::kPlacementLocal;
  if (seat.granted < seat.wanted) return seat.refused.value_or(Reason::kCpu);
  if (!job.observation.measurement) return Reason::kNoMetrics;
  return Reason::kNeedMet;
}

// Pending workers have no place of their own: those that no place was found for go, too. The worst to keep goes first,
// and the first places are for those that are there already and wait for one.
void name_victims(Seat& seat, JobPlan& plan) {
  plan.new_worker_nodes = std::move(seat.new_worker_nodes);
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

// Takes the workers that the seat has gathered.
void fill_plan(Seat& seat, JobPlan& plan) {
  plan.id = seat.job->id;
  plan.workers = seat.granted;
  plan.recommended = plan.workers;
  name_victims(seat, plan);
  plan.local = std::move(seat.local);
  plan.estimate = seat.request->estimate;
  plan.reason = reason_of(seat);
}

}  // namespace

NodeIndex::NodeIndex(const std::vector<Node>& nodes) : nodes_(nodes_by_name(nodes)), index_(nodes.size()) {
  for (int index = 0; index < size(); ++index) index_.add(nodes_[index]->name, index);
}

const Node* NodeIndex::find(std::string_view name) const {
  const int index = index_of(name);
  return index == kNowhere ? nullptr : nodes_[index];
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
  local.reserve(job.hosts.size());
  for (const TrainerHost& host : job.hosts) {
    const std::int64_t share = nodes.share_millicores(host);
    local.push_back({host.node, share, share});
  }
  return local;
}

Plan grant(const ClusterSnapshot& snapshot, const std::vector<Request>& requests, Turns turns,
           WorkerNodes worker_nodes) {
  const NodeIndex nodes(snapshot.nodes);
  Stock stock(nodes, snapshot.quotas);
  std::vector<Seat> seats = seats_in_order_of_id(snapshot, requests);

  // 1. Guaranteed: the feeders' requests.
  for (Seat& seat : seats) take_local(seat, stock);
  // 2. Existing: workers keep their nodes where feeders leave them room.
  for (Seat& seat : seats) keep_workers(seat, stock);
  // 3. New workers.
  stock.rank(worker_nodes);
  add_in_turns(seats, stock, turns == Turns::kOneEach);

  Plan plan;
  plan.capacity_millicores = stock.capacity();
  plan.granted_millicores = stock.capacity() - stock.left();
  plan.jobs.resize(seats.size());
  for (std::size_t i = 0; i < seats.size(); ++i) fill_plan(seats[i], plan.jobs[i]);
  return plan;
}

}  // namespace sluice::scheduler
