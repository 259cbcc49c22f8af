#include "scheduler/testing/rules.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>

namespace sluice::scheduler::testing {
namespace {

// What stands on a node once the plan has been carried out, and what of it is the plan's doing.
struct Load {
  std::int64_t millicores = 0;
  std::int64_t worker_millicores = 0;
  std::int64_t memory_bytes = 0;
  double sent_bytes = 0;      // by data workers
  double received_bytes = 0;  // by trainers, from data workers
  int new_workers = 0;
  int admitted_gpus = 0;
  bool more_local = false;     // feeders get more than they have
  bool more_received = false;  // a trainer gets more workers than it has
};

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
    const auto worker_on = [&](const std::string& node) {
      Load& load = loads_[node];
      load.millicores += job.worker_millicores;
      load.worker_millicores += job.worker_millicores;
      load.memory_bytes += job.worker_memory_bytes;
      load.sent_bytes += traffic;
    };
    for (const Worker* worker : staying(job, plan))
      if (!worker->node.empty()) worker_on(worker->node);
    for (const std::string& node : plan.new_worker_nodes) {
      worker_on(node);
      ++loads_[node].new_workers;
    }
    for (std::size_t i = 0; i < plan.local.size(); ++i) {
      Load& load = loads_[plan.local[i].node];
      load.millicores += plan.local[i].request_millicores;
      load.more_local |= plan.local[i].request_millicores > job.hosts[i].request_millicores;
    }
    for (const TrainerHost& host : job.hosts) {
      loads_[host.node].received_bytes += plan.workers * traffic * host.ranks / std::max(job.ranks, 1);
      loads_[host.node].more_received |= traffic > 0 && plan.workers > job.allocated_workers;
    }
    for (const std::string& node : plan.admission.nodes) {
      loads_[node].millicores += job.waiting->millicores_per_rank;
      loads_[node].admitted_gpus += job.waiting->gpus_per_rank;
    }
  }

  void check_node(const Node& node, const Load& load) {
    const bool more = load.new_workers > 0 || load.more_local || load.admitted_gpus > 0;
    rule(load.millicores <= node.allocatable_millicores || !more, "CPU of " + node.name);
    rule(load.new_workers == 0 || node.schedulable, "no new workers on cordoned " + node.name);
    rule(load.new_workers == 0 || load.worker_millicores <= node.allocatable_millicores -
                                                                node.requested_by_others_millicores -
                                                                node.guarded_millicores,
         "guarded CPU of " + node.name);
    rule(load.new_workers == 0 || !node.free_memory_bytes || load.memory_bytes <= *node.free_memory_bytes,
         "memory of " + node.name);
    constexpr double kRounding = 1 + 1e-9;
    const double network = node.network_bytes_per_second.value_or(1e300) * kRounding;
    rule(load.new_workers == 0 || load.sent_bytes <= network, "network out of " + node.name);
    rule(!load.more_received || load.received_bytes <= network, "network into " + node.name);
    rule(load.admitted_gpus == 0 || node.gpus_in_use + load.admitted_gpus <= node.gpus, "GPUs of " + node.name);
    rule(load.admitted_gpus == 0 || node.schedulable, "no trainer on cordoned " + node.name);
  }

  void check_budget() {
    if (!snapshot_.budget_per_hour) return;
    double cost = 0;
    int added = 0;
    for (const Node& node : snapshot_.nodes) {
      cost += price_per_core(node) * static_cast<double>(loads_[node.name].worker_millicores) / 1000;
      if (node.price_per_hour > 0) added += loads_[node.name].new_workers;
    }
    rule(cost <= *snapshot_.budget_per_hour + 1e-6 || added == 0, "the budget");
  }

  void check_quota(const Quota& quota, const Plan& plan) {
    std::int64_t millicores = 0;
    int running = 0, admitted = 0;
    bool more = false;
    for (const JobPlan& job_plan : plan.jobs) {
      const Job& job = job_of(snapshot_, job_plan.id);
      if (job.quota != quota.name) continue;
      millicores += job_plan.workers * job.worker_millicores;
      more |= job_plan.workers > job.allocated_workers;
      running += job.running ? job.gpus : 0;
      admitted += job_plan.admission.admit ? job.gpus : 0;
    }
    rule(!quota.worker_millicores || millicores <= *quota.worker_millicores || !more, "CPU of quota " + quota.name);
    rule(!quota.gpus || admitted == 0 || running + admitted <= *quota.gpus, "GPUs of quota " + quota.name);
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
    check_admission(job, plan.admission);
    const Estimate& e = plan.estimate;
    for (const double figure : {e.demand_samples_per_second, e.local_rate_per_core, e.remote_rate_per_core,
                                e.supply_ratio, e.planned_supply_ratio, plan.next_worker_gain_percent})
      rule(std::isfinite(figure) && figure >= -1e-9, "the figures of " + name + " are numbers");
    rule(plan.explanation.size() > 1 && plan.explanation.back() == '.', "a sentence for " + name);
  }

  void check_admission(const Job& job, const Admission& admission) {
    if (!admission.admit) {
      rule(admission.nodes.empty(), job.id.name + " does not start anywhere");
      return;
    }
    rule(job.waiting && !job.running && !job.waiting->admitted_elsewhere, job.id.name + " is ours to admit");
    rule(std::ssize(admission.nodes) == std::max(job.ranks, 1), "all ranks of " + job.id.name + " at once");
  }

  const ClusterSnapshot& snapshot_;
  std::map<std::string, Load> loads_;
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

double cost_of(const ClusterSnapshot& snapshot) {
  double cost = 0;
  for (const Job& job : snapshot.jobs)
    for (const Worker& worker : job.workers)
      if (!worker.node.empty())
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
    for (const std::string& node : job.admission.nodes) out << " @" << node;
    for (const LocalCpu& local : job.local)
      out << ' ' << local.node << ':' << local.request_millicores << ".." << local.limit_millicores;
    out << ' ' << job.estimate.planned_supply_ratio << ' ' << job.next_worker_gain_percent << ' ' << job.explanation
        << '\n';
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
