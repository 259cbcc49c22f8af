#include "scheduler/testing/rules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace sluice::scheduler::testing {
namespace {

// The pods of a node once the plan has been carried out, and those that the plan has added.
struct Load {
  std::int64_t millicores = 0;
  std::int64_t memory_bytes = 0;
  double sent_bytes = 0;      // by data workers
  double received_bytes = 0;  // by trainers, from data workers
  int new_workers = 0;
  bool more_sent = false;      // a new worker sends something; a sample of unknown size adds nothing that is known
  bool more_local = false;     // feeders get more than they have
  bool more_received = false;  // a trainer gets more workers than it has, on other nodes
};

// Part of the job's ranks on a node.
double part_on(const Job& job, const std::string& node) {
  double ranks = 0;
  for (const TrainerHost& host : job.hosts) ranks += host.node == node ? host.ranks : 0;
  return ranks / std::max(job.ranks, 1);
}

class Check {
 public:
  Check(const ClusterSnapshot& snapshot, const Plan& plan) : snapshot_(snapshot) {
    for (const Node& node : snapshot.nodes) loads_[node.name].millicores = node.requested_by_others_millicores;
    for (const JobPlan& job_plan : plan.jobs) add(job_of(snapshot, job_plan.id), job_plan);
    for (const Node& node : snapshot.nodes) check_node(node, loads_[node.name]);
    check_budget();
    for (const Quota& quota : snapshot.quotas) check_quota(quota, plan);
    for (const JobPlan& job_plan : plan.jobs) check_job(job_of(snapshot, job_plan.id), job_plan);
    rule(plan.jobs.size() == snapshot.jobs.size(), "every job has a plan");
    rule(std::is_sorted(plan.jobs.begin(), plan.jobs.end(),
                        [](const JobPlan& a, const JobPlan& b) { return a.id < b.id; }),
         "plans are in the order of the ids");
  }

  std::vector<std::string> take() { return std::move(broken_); }

 private:
  void rule(bool kept, const std::string& what) {
    if (!kept) broken_.push_back("not kept: " + what);
  }

  void add(const Job& job, const JobPlan& plan) {
    const double cores = static_cast<double>(job.worker_millicores) / 1000;
    const double traffic = job.bytes_per_sample.value_or(0) * plan.estimate.remote_rate_per_core * cores;
    std::map<std::string, int> standing_on;
    const auto worker_on = [&](const std::string& node) {
      Load& load = loads_[node];
      cost_of_quotas_[job.quota] += cores * price_per_core_on(node);
      ++standing_on[node];
      load.millicores += job.worker_millicores;
      load.memory_bytes += job.worker_memory_bytes;
      load.sent_bytes += traffic * (1 - part_on(job, node));
    };
    const std::vector<const Worker*> stay = staying(job, plan);
    // Pending workers send nothing yet. The plan does not say where it finds them a place, which may be on a host of
    // their job.
    const auto pending =
        std::count_if(stay.begin(), stay.end(), [](const Worker* worker) { return worker->node.empty(); });
    const auto sending = static_cast<double>(std::ssize(stay) - pending + std::ssize(plan.new_worker_nodes));
    for (const Worker* worker : stay)
      if (!worker->node.empty()) worker_on(worker->node);
    for (const std::string& node : plan.new_worker_nodes) {
      rule(takes_new_workers(node_of(snapshot_, node), job), "no new worker of " + job.id.name + " on closed " + node);
      worker_on(node);
      ++loads_[node].new_workers;
      if (node_of(snapshot_, node).price_per_hour > 0) ++paid_for_by_quotas_[job.quota];
      loads_[node].more_sent |= traffic * (1 - part_on(job, node)) > 0;
    }
    for (std::size_t i = 0; i < plan.local.size(); ++i) {
      Load& load = loads_[plan.local[i].node];
      load.millicores += plan.local[i].request_millicores;
      load.more_local |= plan.local[i].request_millicores > job.hosts[i].request_millicores;
    }
    for (const TrainerHost& host : job.hosts) {
      loads_[host.node].received_bytes += (sending - standing_on[host.node]) * traffic * part_on(job, host.node);
      // A new worker on the trainer's own host reaches it without the network.
      const bool from_elsewhere = std::any_of(plan.new_worker_nodes.begin(), plan.new_worker_nodes.end(),
                                              [&](const std::string& node) { return node != host.node; });
      loads_[host.node].more_received |= traffic > 0 && plan.workers > job.allocated_workers && from_elsewhere;
    }
  }

  // A worker may stand on a node that is gone.
  double price_per_core_on(const std::string& name) const {
    for (const Node& node : snapshot_.nodes)
      if (node.name == name) return price_per_core(node);
    return 0;
  }

  void check_node(const Node& node, const Load& load) {
    const bool more = load.new_workers > 0 || load.more_local;
    rule(load.millicores <= node.allocatable_millicores || !more, "CPU of " + node.name);
    rule(load.new_workers == 0 || !node.free_memory_bytes || load.memory_bytes <= *node.free_memory_bytes,
         "memory of " + node.name);
    constexpr double kRounding = 1 + 1e-9;
    const double network = node.network_bytes_per_second.value_or(1e300) * kRounding;
    rule(!load.more_sent || load.sent_bytes <= network, "network out of " + node.name);
    rule(!load.more_received || load.received_bytes <= network, "network into " + node.name);
  }

  void check_budget() {
    double cost = 0;
    int added = 0;
    for (const auto& [quota, cost_of_quota] : cost_of_quotas_) cost += cost_of_quota;
    for (const auto& [quota, added_by_quota] : paid_for_by_quotas_) added += added_by_quota;
    rule(!snapshot_.budget_per_hour || cost <= *snapshot_.budget_per_hour + 1e-6 || added == 0, "the budget");
  }

  void check_quota(const Quota& quota, const Plan& plan) {
    std::int64_t millicores = 0;
    bool more = false;
    for (const JobPlan& job_plan : plan.jobs) {
      const Job& job = job_of(snapshot_, job_plan.id);
      if (job.quota != quota.name) continue;
      millicores += job_plan.workers * job.worker_millicores;
      more |= job_plan.workers > job.allocated_workers;
    }
    const bool within_budget = !quota.budget_per_hour || cost_of_quotas_[quota.name] <= *quota.budget_per_hour + 1e-6;
    rule(within_budget || paid_for_by_quotas_[quota.name] == 0, "the budget of quota " + quota.name);
    rule(!quota.worker_millicores || millicores <= *quota.worker_millicores || !more, "CPU of quota " + quota.name);
  }

  void check_job(const Job& job, const JobPlan& plan) {
    const std::string& name = job.id.name;
    const auto live =
        std::count_if(job.workers.begin(), job.workers.end(), [](const Worker& worker) { return !worker.draining; });
    const auto stay = std::ssize(staying(job, plan));
    const std::set<std::string> victims(plan.victims.begin(), plan.victims.end());
    rule(std::ssize(victims) == std::ssize(plan.victims) && live - std::ssize(victims) == stay,
         "the victims of " + name + " are live workers, each named once");
    rule(stay <= plan.workers, name + " stops what it is not to have");
    rule(stay + std::ssize(plan.new_worker_nodes) <= plan.workers, name + " starts no more than it is to have");
    rule(plan.workers >= 0 && plan.recommended >= 0, "numbers of workers are not negative");
    rule(job.mode == Mode::kOff || plan.recommended <= job.max_workers, "the maximum of " + name);
    rule(job.mode == Mode::kAuto || plan.workers == job.allocated_workers, name + " is left alone");
    rule(job.mode != Mode::kAuto || plan.workers == plan.recommended, name + " gets what is recommended");
    rule(job.running || job.mode != Mode::kAuto || plan.workers == 0, name + " does not run and has no workers");
    rule(plan.local.size() == (job.local_adjustable ? job.hosts.size() : 0), "feeders of " + name);
    for (const LocalCpu& local : plan.local)
      rule(local.request_millicores >= 0 && local.limit_millicores >= local.request_millicores,
           "the limit of the feeders of " + name + " is no less than their request");
    const Estimate& e = plan.estimate;
    for (const double figure : {e.demand_samples_per_second, e.local_rate_per_core, e.remote_rate_per_core,
                                plan.supply_ratio, plan.planned_supply_ratio, plan.next_worker_gain_percent})
      rule(std::isfinite(figure) && figure >= -1e-9, "the figures of " + name + " are numbers");
    rule(plan.explanation.size() > 1 && plan.explanation.back() == '.', "a sentence for " + name);
  }

  const ClusterSnapshot& snapshot_;
  std::map<std::string, Load> loads_;
  std::map<std::string, double> cost_of_quotas_;   // per hour; "": of jobs without one
  std::map<std::string, int> paid_for_by_quotas_;  // new workers on nodes that cost something
  std::vector<std::string> broken_;
};

}  // namespace

std::vector<std::string> broken_rules(const ClusterSnapshot& snapshot, const Plan& plan) {
  return Check(snapshot, plan).take();
}

const Job& job_of(const ClusterSnapshot& snapshot, const JobId& id) {
  for (const Job& job : snapshot.jobs)
    if (job.id == id) return job;
  throw std::out_of_range("no job " + id.name);
}

const Node& node_of(const ClusterSnapshot& snapshot, const std::string& name) {
  for (const Node& node : snapshot.nodes)
    if (node.name == name) return node;
  throw std::out_of_range("no node " + name);
}

std::int64_t room_on(const Node& node, const ClusterSnapshot& snapshot) {
  std::int64_t free = node.allocatable_millicores - node.requested_by_others_millicores;
  for (const Job& job : snapshot.jobs) {
    for (const TrainerHost& host : job.hosts)
      free -= job.local_adjustable && host.node == node.name ? host.request_millicores : 0;
    for (const Worker& worker : job.workers) free -= worker.node == node.name ? job.worker_millicores : 0;
  }
  return free;
}

double price_per_core(const Node& node) {
  return 1000 * node.price_per_hour / std::max(1.0, static_cast<double>(node.allocatable_millicores));
}

double cost_of(const ClusterSnapshot& snapshot, const std::string& quota) {
  double cost = 0;
  for (const Job& job : snapshot.jobs)
    for (const Worker& worker : job.workers)
      if (!worker.node.empty() && (quota.empty() || job.quota == quota))
        cost += price_per_core(node_of(snapshot, worker.node)) * static_cast<double>(job.worker_millicores) / 1000;
  return cost;
}

std::string text_of(const Plan& plan) {
  std::ostringstream out;
  out.precision(15);
  out << plan.capacity_millicores << ' ' << plan.granted_millicores << '\n';
  for (const JobPlan& job : plan.jobs) {
    out << job.id.name << ' ' << job.workers << ' ' << job.recommended << ' ' << to_string(job.reason) << ' '
        << to_string(job.bottleneck) << ' ' << job.evidence;
    for (const std::string& victim : job.victims) out << " -" << victim;
    for (const std::string& node : job.new_worker_nodes) out << " +" << node;
    for (const LocalCpu& local : job.local)
      out << ' ' << local.node << ':' << local.request_millicores << ".." << local.limit_millicores;
    out << ' ' << job.planned_supply_ratio << ' ' << job.next_worker_gain_percent << ' ' << job.explanation << '\n';
  }
  return out.str();
}

std::vector<const Worker*> staying(const Job& job, const JobPlan& plan) {
  std::vector<const Worker*> stay;
  for (const Worker& worker : job.workers) {
    const bool goes = std::find(plan.victims.begin(), plan.victims.end(), worker.name) != plan.victims.end();
    if (!worker.draining && !goes) stay.push_back(&worker);
  }
  return stay;
}

}  // namespace sluice::scheduler::testing
