#include "scheduler/simulator/world/supply.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sluice::simulator {
namespace {

double granted(const CpuClaim& claim, double level) {
  return std::clamp(claim.request * level, claim.request, std::max(claim.request, claim.most));
}

// CPU that a claim keeps busy when it may use so much.
double busy_cores(const CpuClaim& claim, double cores, const Physics& physics) {
  if (claim.need <= 0) return 0;
  return claim.need * progress(cores / claim.need, physics.softmin_exponent);
}

// The highest common multiple of the requests that the host's CPU allows.
double highest_level(const std::vector<CpuClaim>& claims, double available, const Physics& physics) {
  double most = 1;
  for (const CpuClaim& claim : claims)
    if (claim.most > claim.request) most = std::max(most, claim.most / claim.request);
  if (most == 1) return most;
  std::vector<double> at_most, busy_at_most;
  double busy = 0;
  for (const CpuClaim& claim : claims) {
    at_most.push_back(granted(claim, most));
    busy_at_most.push_back(busy_cores(claim, at_most.back(), physics));
    busy += busy_at_most.back();
  }
  if (busy <= available) return most;
  const auto fits = [&](double level) {
    double sum = 0;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      const double cores = granted(claims[i], level);
      // A trainer that has all the CPU that it can use leaves the division.
      sum += cores == at_most[i] ? busy_at_most[i] : busy_cores(claims[i], cores, physics);
    }
    return sum <= available;
  };
  double low = 1;
  for (int i = 0; i < 30; ++i) {
    const double middle = (low + most) / 2;
    (fits(middle) ? low : most) = middle;
  }
  return low;
}

CpuClaim claim_of(const JobState& job, const HostState& host, const Physics& physics) {
  const double need = job.knee_cores * host.gpus / job.spec->gpus;
  const double floor = static_cast<double>(physics.min_local_millicores) / 1000;
  const double request = std::max(floor, static_cast<double>(host.request_millicores) / 1000);
  const double limit = static_cast<double>(host.limit_millicores) / 1000;
  return {request, std::min(limit, std::max(request, physics.local_appetite * need)), need};
}

// Of all data workers of the job on the node; empty: none of them delivers. What its feeders supply, they need not.
CpuClaim workers_claim(const JobState& job, int node, double now_seconds, const Physics& physics) {
  double request = 0, everywhere = 0, local = 0;
  for (const WorkerState& worker : job.workers) {
    if (worker.node < 0 || worker.gone_seconds >= 0 || worker.ready_seconds > now_seconds) continue;
    everywhere += static_cast<double>(worker.millicores) / 1000;
    if (worker.node == node) request += static_cast<double>(worker.millicores) / 1000;
  }
  if (request <= 0) return {};
  for (const HostState& host : job.hosts) local += host.supply;
  const double need = std::max(job.knee_cores - local, kLeastKnee) / physics.remote_efficiency * request / everywhere;
  return {request, physics.worker_limit_factor * request, need};
}

// Calls visit(job, host) for every trainer's part on the node.
template <typename Visit>
void for_each_host(const NodeState& node, int node_index, std::vector<JobState>& jobs, const Visit& visit) {
  for (const int index : node.trainers)
    for (HostState& host : jobs[index].hosts)
      if (host.node == node_index) visit(jobs[index], host);
}

// The supply of a worker now: nothing before it is ready, without a node, or once it drains.
double delivered_cores(const WorkerState& worker, double now_seconds, const Physics& physics) {
  if (worker.node < 0 || worker.gone_seconds >= 0 || worker.ready_seconds > now_seconds) return 0;
  const double speed = worker.warm_seconds > now_seconds ? physics.worker_warmup_speed : 1;
  return speed * worker.cpu_level * static_cast<double>(worker.millicores) / 1000;
}

double remote_cores(const JobState& job, double now_seconds, const Physics& physics) {
  double cores = 0;
  for (const WorkerState& worker : job.workers) cores += delivered_cores(worker, now_seconds, physics);
  return cores;
}

RemoteFlow flow_of(const JobState& job, double now_seconds, const Physics& physics) {
  RemoteFlow flow;
  const double cores = remote_cores(job, now_seconds, physics);
  if (cores <= 0 || job.evaluation_ends_seconds >= 0) return flow;
  const double remote = physics.remote_efficiency * cores;
  double local = 0;
  for (const HostState& host : job.hosts) local += host.supply;
  const double speed = progress((local + remote) / job.knee_cores, physics.softmin_exponent);
  flow.gbps = job.spec->network_gbps_per_gpu * job.spec->gpus * speed * remote / (local + remote);
  if (flow.gbps <= 0) return flow;
  for (const WorkerState& worker : job.workers) {
    const double share = delivered_cores(worker, now_seconds, physics) / cores;
    if (share <= 0) continue;
    const auto part = std::find_if(flow.parts.begin(), flow.parts.end(),
                                   [&](const RemoteFlow::Part& p) { return p.node == worker.node; });
    if (part == flow.parts.end())
      flow.parts.push_back({worker.node, share});
    else
      part->share += share;
  }
  for (RemoteFlow::Part& part : flow.parts) {
    const auto here =
        std::find_if(job.hosts.begin(), job.hosts.end(), [&](const HostState& host) { return host.node == part.node; });
    const double gang = job.spec->gpus;
    part.leaves = part.share * (here == job.hosts.end() ? 1 : 1 - here->gpus / gang);
  }
  return flow;
}

// Share of the flow that is made on the node itself.
double made_on(const RemoteFlow& flow, int node) {
  for (const RemoteFlow::Part& part : flow.parts)
    if (part.node == node) return part.share;
  return 0;
}

// The ratio on the worst-fed host when `remote` goes to the hosts that need it most.
double worst_ratio(const JobState& job, double remote) {
  if (job.hosts.size() == 1) return (job.hosts[0].supply + remote) / job.knee_cores;
  std::vector<std::pair<double, double>> hosts;  // ratio from local CPU alone, need
  for (const HostState& host : job.hosts) {
    const double need = job.knee_cores * host.gpus / job.spec->gpus;
    hosts.emplace_back(host.supply / need, need);
  }
  std::sort(hosts.begin(), hosts.end());
  double level = hosts[0].first, width = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const double rise = (hosts[i].first - level) * width;
    if (rise > remote) break;  // never for the first: it rises from its own level
    remote -= rise;
    level = hosts[i].first;
    width += hosts[i].second;
  }
  return level + remote / width;
}

}  // namespace

void share_host_cpu(NodeState& node, int node_index, std::vector<JobState>& jobs, const Physics& physics) {
  std::vector<CpuClaim> claims;
  double given = 0;
  for_each_host(node, node_index, jobs, [&](JobState& job, HostState& host) {
    claims.push_back(claim_of(job, host, physics));
    given += claims.back().request;
  });
  const double available = static_cast<double>(node.capacity_millicores - node.worker_millicores) / 1000;
  if (available != node.claimed_cores || claims != node.claims) {
    node.claim_level = highest_level(claims, available, physics);
    node.claimed_cores = available;
    node.claims = std::move(claims);
  }
  // What feeders have whatever the plan says is no request: where nothing is left for it, all give a part.
  const double squeeze = given > available * (1 + 1e-9) ? available / given : 1;
  node.trainer_cores = 0;
  std::size_t at = 0;
  for_each_host(node, node_index, jobs, [&](JobState& job, HostState& host) {
    const double cores = squeeze * granted(node.claims[at++], node.claim_level);
    // Its neighbour's use has changed, and with it the idle CPU.
    if (cores != host.cores) job.dirty = true;
    host.cores = cores;
    host.supply = local_supply_cores(cores, physics);
    node.trainer_cores += cores;
  });
}

void share_idle_cpu_with_workers(const std::vector<NodeState>& nodes, std::vector<JobState>& jobs,
                                 const std::vector<int>& running, double now_seconds, const Physics& physics) {
  if (physics.worker_limit_factor <= 1) return;
  for (int node = 0; node < std::ssize(nodes); ++node) {
    // 1. What each job's workers on the node may use, and can use.
    std::vector<CpuClaim> claims;
    claims.reserve(running.size());
    for (const int index : running) claims.push_back(workers_claim(jobs[index], node, now_seconds, physics));
    // 2. Its division: as between trainers.
    const double available = static_cast<double>(nodes[node].capacity_millicores) / 1000 - nodes[node].trainer_cores;
    const double level = highest_level(claims, available, physics);
    // 3. A job whose workers get more or less has other rates.
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (claims[i].request <= 0) continue;
      JobState& job = jobs[running[i]];
      const double cpu_level = granted(claims[i], level) / claims[i].request;
      for (WorkerState& worker : job.workers) {
        if (worker.node != node || worker.cpu_level == cpu_level) continue;
        worker.cpu_level = cpu_level;
        job.dirty = true;
      }
    }
  }
}

void share_network(const std::vector<NodeState>& nodes, std::vector<JobState>& jobs, const std::vector<int>& running,
                   double now_seconds, const Physics& physics) {
  const bool limited = std::any_of(nodes.begin(), nodes.end(), [](const NodeState& n) { return n.network_gbps > 0; });
  if (!limited) return;
  // In at the trainers' hosts, out at the workers' nodes; Gb/s.
  std::vector<double> in(nodes.size(), 0), out(nodes.size(), 0);
  for (const int index : running) {
    JobState& job = jobs[index];
    if (job.dirty) job.flow = flow_of(job, now_seconds, physics);
    if (job.flow.gbps <= 0) continue;
    for (const RemoteFlow::Part& part : job.flow.parts) out[part.node] += job.flow.gbps * part.leaves;
    for (const HostState& host : job.hosts)
      in[host.node] += job.flow.gbps * host.gpus / job.spec->gpus * (1 - made_on(job.flow, host.node));
  }
  // Share of a flow that a node's network lets through.
  const auto factors = [&](std::vector<double> gbps) {
    for (std::size_t i = 0; i < nodes.size(); ++i)
      gbps[i] = nodes[i].network_gbps <= 0 || gbps[i] <= nodes[i].network_gbps ? 1 : nodes[i].network_gbps / gbps[i];
    return gbps;
  };
  in = factors(std::move(in));
  out = factors(std::move(out));
  const bool senders_full = std::any_of(out.begin(), out.end(), [](double factor) { return factor < 1; });
  for (const int index : running) {
    JobState& job = jobs[index];
    // Full nodes slow the batches that come from them, and nothing else: the trainer takes from any worker that has one
    // ready.
    double lost = 0;
    if (senders_full)
      for (const RemoteFlow::Part& part : job.flow.parts) lost += (1 - out[part.node]) * part.leaves;
    for (HostState& host : job.hosts) {
      double now = 1 - lost;
      if (job.flow.gbps > 0 && in[host.node] < 1) {
        const double own = made_on(job.flow, host.node);
        now = std::min(now, own + (1 - own) * in[host.node]);
      }
      if (now != host.network_factor) job.dirty = true;
      host.network_factor = now;
    }
  }
}

Rates rates_of(const JobState& job, const std::vector<NodeState>& nodes, double now_seconds, double storage_ratio,
               const Physics& physics) {
  Rates rates;
  const double remote = remote_cores(job, now_seconds, physics);
  double network = 1, busiest = 0;
  for (const HostState& host : job.hosts) {
    const NodeState& node = nodes[host.node];
    rates.local_cores += host.cores;
    rates.local_supply += host.supply;
    network = std::min(network, host.network_factor);
    const double preparing = 1000 * node.trainer_cores + static_cast<double>(node.worker_millicores);
    busiest = std::max(busiest, preparing / static_cast<double>(node.capacity_millicores));
  }
  for (const WorkerState& worker : job.workers)
    if (worker.node >= 0) rates.remote_cores += static_cast<double>(worker.millicores) / 1000;
  rates.remote_supply = physics.remote_efficiency * remote * network;
  if (job.evaluation_ends_seconds >= 0) {
    rates.queue_share = 1;  // no trainer takes from it
    return rates;
  }

  const double total = rates.local_supply + rates.remote_supply;
  if (total <= 0) {
    rates.per_second.wait_seconds = 1;
    return rates;
  }
  const double trainer = 1 - physics.interference * std::min(1.0, busiest);  // its speed when it never waits
  const double ratio = physics.slowest_rank ? worst_ratio(job, rates.remote_supply) : total / job.knee_cores;
  const double of_cpu = ratio / trainer;
  rates.supply_ratio = std::min(of_cpu, storage_ratio / trainer);
  rates.speed = trainer * progress(rates.supply_ratio, physics.softmin_exponent);
  // Full while supply exceeds demand, and empty while it does not: no slope but at the knee.
  rates.queue_share = std::clamp(5 * (rates.supply_ratio - 0.9), 0.0, 1.0);

  const double gpus = job.spec->gpus;
  const double used = rates.speed * job.knee_cores;  // local-equivalent cores of work done
  Counters& each = rates.per_second;
  each.samples = rates.speed * gpus * kSamplesPerSecondPerGpu;
  each.batches = rates.speed * gpus * physics.batches_per_second_per_gpu;
  each.compute_seconds = rates.speed / trainer;
  each.wait_seconds = 1 - each.compute_seconds;
  each.local_samples = each.samples * rates.local_supply / total;
  each.remote_samples = each.samples - each.local_samples;
  each.local_busy_core_seconds = rates.local_supply <= 0 ? 0 : used * rates.local_cores / total;
  each.remote_busy_core_seconds = used * rates.remote_supply / total / physics.remote_efficiency;
  if (rates.supply_ratio < of_cpu)
    each.blocked_thread_seconds = (rates.local_cores + remote) * (1 - rates.supply_ratio / of_cpu);
  return rates;
}

double epoch_seconds(const JobSpec& job, const Physics& physics) {
  return job.data_set < 0 ? physics.epoch_seconds : job.ideal_seconds / job.epochs;
}

double read_gbps(const JobSpec& job, const Cluster& cluster) {
  if (job.data_set < 0) return job.network_gbps_per_gpu * job.gpus * cluster.physics.storage_share_of_network;
  return 8 * cluster.data_sets[job.data_set].gigabytes / epoch_seconds(job, cluster.physics);
}

double storage_need_gbps(const JobState& job, const Cluster& cluster) {
  const double all = read_gbps(*job.spec, cluster);
  if (job.spec->data_set >= 0) return all * job.fetched_share;
  return job.epoch == 0 ? all : all * (1 - cluster.physics.cached_after_first_epoch);
}

void advance(JobState& job, double now_seconds) {
  const double seconds = now_seconds - job.updated_seconds;
  job.updated_seconds = now_seconds;
  if (seconds <= 0 || job.phase != Phase::kRunning) return;
  const Counters& each = job.rates.per_second;
  Counters& sum = job.counters;
  sum.at_seconds = now_seconds;
  sum.samples += seconds * each.samples;
  sum.batches += seconds * each.batches;
  sum.compute_seconds += seconds * each.compute_seconds;
  sum.wait_seconds += seconds * each.wait_seconds;
  sum.local_samples += seconds * each.local_samples;
  sum.local_busy_core_seconds += seconds * each.local_busy_core_seconds;
  sum.remote_samples += seconds * each.remote_samples;
  sum.remote_busy_core_seconds += seconds * each.remote_busy_core_seconds;
  sum.blocked_thread_seconds += seconds * each.blocked_thread_seconds;
  sum.read_bytes += seconds * each.read_bytes;
  job.done_seconds += seconds * job.rates.speed;
  job.busy_gpu_seconds += seconds * job.rates.speed * job.spec->gpus;
  const double while_arriving = std::clamp(job.last_arrival_seconds - (now_seconds - seconds), 0.0, seconds);
  job.busy_gpu_seconds_while_arriving += while_arriving * job.rates.speed * job.spec->gpus;
  job.allocated_gpu_seconds += seconds * job.spec->gpus;
  job.core_seconds += seconds * (job.rates.local_cores + job.rates.remote_cores);
  job.worker_core_seconds += seconds * job.rates.remote_cores;
}

}  // namespace sluice::simulator
