// sluice-decision-bench [FILE.json]: how long one decision takes, from a full snapshot, on one core.
//
// The clusters are synthetic and scarce: half of the nodes are GPU hosts (8 GPUs, 6 cores each), half have CPU only; 30
// % of the jobs need more CPU than they have, by factors up to six; every job was measured, and holds data workers of
// its own. Nothing is carried over between decisions but what the snapshot holds. Figures are CPU seconds, the smallest
// of the repetitions: other load on the machine only adds.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "scheduler/decide/decide.h"

namespace sluice::scheduler {
namespace {

constexpr double kNowSeconds = 1'000'000;
constexpr int kRepetitions = 7;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Node node(int index, int groups) {
  Node n;
  n.name = "node-" + std::to_string(index) + ".pool.cluster.local";
  n.gpus = index % 2 == 0 ? 8 : 0;
  n.allocatable_millicores = n.gpus > 0 ? 48'000 : 64'000;
  n.requested_by_others_millicores = 500;
  n.network_bytes_per_second = 12.5e9;
  n.group = index % groups;
  return n;
}

Measurement measured(double demand, double rate, double local_cores, double remote_cores) {
  const double supply = rate * (local_cores + 0.77 * remote_cores);
  const double speed = demand * std::pow(1 + std::pow(supply / demand, -6), -1.0 / 6);
  Measurement m;
  m.window_end_seconds = kNowSeconds - 10;
  m.window_seconds = 30;
  m.samples_per_second = speed;
  m.compute_share = speed / demand;
  m.wait_share = 1 - m.compute_share;
  m.batches_in_window = 300;
  const double busy = speed / supply;
  m.local = SourceRate{rate * local_cores * busy, local_cores * busy};
  if (remote_cores > 0) m.remote = SourceRate{0.77 * rate * remote_cores * busy, remote_cores * busy};
  return m;
}

ClusterSnapshot snapshot(int jobs, int nodes, int groups) {
  std::mt19937 random(1);
  const auto upto = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  ClusterSnapshot s;
  s.taken_at_seconds = kNowSeconds;
  for (int i = 0; i < nodes; ++i) s.nodes.push_back(node(i, groups));
  for (int i = 0; i < jobs; ++i) {
    Job job;
    job.id = {"team-" + std::to_string(i % 50), "training-job-" + std::to_string(i)};
    job.running = true;
    job.gpus = job.ranks = 1 << upto(3);
    job.weight = 50 + upto(100);
    const double remaining_seconds = 60 + upto(100'000);
    job.max_workers = 400;
    job.bytes_per_sample = 150'528;
    job.local_adjustable = true;
    const int host = upto((nodes + 1) / 2) * 2;
    const std::int64_t local = 6000 * job.gpus;
    job.hosts = {{s.nodes[host].name, job.ranks, job.gpus, local, local}};
    const double knee = job.gpus * (upto(10) < 3 ? 8 + upto(28) : 0.5 + 0.1 * upto(50));
    const int held = std::min(upto(12), static_cast<int>(knee / 4));
    for (int w = 0; w < held; ++w) {
      const int at = std::min(nodes - 1, upto(nodes / 2) * 2 + 1);
      job.workers.push_back({job.id.name + "-worker-" + std::to_string(w), s.nodes[at].name, true,
                             kNowSeconds - 1000 - upto(1000), kNowSeconds - 900, false});
    }
    job.allocated_workers = held;
    job.remaining_samples = remaining_seconds * 1000 * knee;
    job.observation.measurement = measured(1000 * knee, 1000, static_cast<double>(local) / 1000, held);
    if (groups > 1 && i % 2 == 0) {  // in some of the nodes' groups, never in all
      job.closed_groups.resize(groups, true);
      for (int open = 0; open < 3; ++open) job.closed_groups[upto(groups)] = false;
    }
    s.jobs.push_back(std::move(job));
  }
  return s;
}

struct Figure {
  int jobs, nodes;
  double goal_milliseconds;  // 0: none, for the growth only
  int groups = 1;            // of nodes; half of the jobs may use up to three of them
  double milliseconds = std::numeric_limits<double>::infinity();
  int workers = 0;
};

void measure(Figure& figure) {
  const ClusterSnapshot s = snapshot(figure.jobs, figure.nodes, figure.groups);
  for (int i = 0; i < kRepetitions; ++i) {
    const double before = cpu_seconds();
    const Plan plan = decide(s, {});
    figure.milliseconds = std::min(figure.milliseconds, 1000 * (cpu_seconds() - before));
    figure.workers = 0;
    for (const JobPlan& job : plan.jobs) figure.workers += job.workers;
  }
}

}  // namespace
}  // namespace sluice::scheduler

int main(int argc, char** argv) {
  using sluice::scheduler::Figure;
  std::vector<Figure> figures = {{1000, 1000, 0}, {1000, 5000, 20},       {1000, 5000, 20, 8}, {2500, 2500, 0},
                                 {5000, 5000, 0}, {10000, 10000, 100, 8}, {10000, 10000, 100}};
  bool ok = true;
  nlohmann::json rows = nlohmann::json::array();
  std::printf("%-36s %10s %8s  %s\n", "decision from a full snapshot", "ms", "goal", "");
  for (Figure& figure : figures) {
    measure(figure);
    const bool met = figure.goal_milliseconds == 0 || figure.milliseconds < figure.goal_milliseconds;
    ok &= met;
    const std::string name = std::to_string(figure.jobs) + " jobs x " + std::to_string(figure.nodes) + " nodes" +
                             (figure.groups > 1 ? " in " + std::to_string(figure.groups) + " groups" : "");
    const std::string goal =
        figure.goal_milliseconds > 0 ? "< " + std::to_string(static_cast<int>(figure.goal_milliseconds)) : "";
    std::printf("%-36s %10.1f %8s  %s\n", name.c_str(), figure.milliseconds, goal.c_str(),
                goal.empty() ? "" : (met ? "ok" : "falls short"));
    rows.push_back({{"name", name}, {"milliseconds", figure.milliseconds}, {"workers", figure.workers}});
    if (figure.goal_milliseconds > 0) rows.back().update({{"goal", figure.goal_milliseconds}, {"ok", met}});
  }
  // Of n jobs on n nodes; n log n is 13.3 from a thousand to ten thousand, n squared 100.
  const double growth = figures.back().milliseconds / figures.front().milliseconds;
  const double n_log_n = 10 * std::log(10000.0) / std::log(1000.0);
  std::printf("%-36s %10.1f %8s  n log n would be %.1f\n", "growth from 1,000 to 10,000", growth, "", n_log_n);
  rows.push_back({{"name", "growth from 1000 to 10000"}, {"ratio", growth}, {"n_log_n", n_log_n}});
  if (argc > 1) std::ofstream(argv[1]) << nlohmann::json{{"decision", rows}}.dump(2) << "\n";
  return ok ? 0 : 1;
}
