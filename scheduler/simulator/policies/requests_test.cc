#include "scheduler/simulator/policies/requests.h"

#include <algorithm>

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

constexpr double kNow = 1000;

Node cpu_node(const std::string& name, int cores) {
  return {.name = name, .allocatable_millicores = std::int64_t{1000} * cores};
}

Node gpu_node(const std::string& name, int gpus, int cores) {
  Node node = cpu_node(name, cores);
  node.gpus = gpus;
  return node;
}

Job running(const std::string& name) {
  Job job{.id = {"default", name}, .running = true};
  job.max_workers = 100;
  return job;
}

Job on_host(Job job, const std::string& node, int gpus) {
  job.gpus = gpus;
  job.hosts.push_back({.node = node, .gpus = gpus});
  job.local_adjustable = true;
  return job;
}

Job with_worker(Job job, const std::string& name, const std::string& node, bool ready, double created) {
  job.workers.push_back({.name = name,
                         .node = node,
                         .ready = ready,
                         .created_at_seconds = created,
                         .ready_since_seconds = ready ? created : 0});
  ++job.allocated_workers;
  return job;
}

Job holding(Job job, int count, const std::string& node) {
  for (int i = 0; i < count; ++i) job = with_worker(job, job.id.name + "-" + std::to_string(i), node, true, i);
  return job;
}

ClusterSnapshot snapshot(std::vector<Node> nodes, std::vector<Job> jobs) {
  return {.taken_at_seconds = kNow, .nodes = std::move(nodes), .jobs = std::move(jobs)};
}

Request workers(int count) { return {.workers = count}; }

std::vector<int> counts(const Plan& plan) {
  std::vector<int> counts;
  for (const JobPlan& job : plan.jobs) counts.push_back(job.workers);
  return counts;
}

TEST_CASE("how many workers a request becomes, by situation") {
  Job limited = running("a");
  limited.max_workers = 3;
  Job floored = running("a");
  floored.min_workers = 2;
  Job finished = holding(running("a"), 3, "n");
  finished.running = false;
  Job local_only = running("a");
  local_only.placement = Placement::kLocal;
  Job off = holding(running("a"), 3, "n");
  off.mode = Mode::kOff;
  Job recommended = holding(running("a"), 3, "n");
  recommended.mode = Mode::kRecommend;
  Job off_and_finished = off, recommended_and_finished = recommended;
  off_and_finished.running = recommended_and_finished.running = false;
  struct Row {
    const char* situation;
    Job job;
    int request, want;
    Reason want_reason;
  };
  const Row rows[] = {
      {"there is room", running("a"), 5, 5, Reason::kNoMetrics},
      {"there is not", running("a"), 50, 10, Reason::kCpu},
      {"over the job's maximum", limited, 5, 3, Reason::kNoMetrics},
      {"under its minimum", floored, 0, 2, Reason::kNoMetrics},
      {"finished", finished, 5, 0, Reason::kNotRunning},
      {"placement Local", local_only, 5, 0, Reason::kPlacementLocal},
      {"mode Off", off, 5, 3, Reason::kModeOff},
      {"mode Recommend", recommended, 0, 3, Reason::kNoMetrics},
      {"mode Off, finished", off_and_finished, 5, 3, Reason::kModeOff},
      {"mode Recommend, finished", recommended_and_finished, 5, 3, Reason::kNotRunning},
      {"fewer than there are", holding(running("a"), 6, "n"), 2, 2, Reason::kNoMetrics},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    const Plan plan = grant(snapshot({cpu_node("n", 10)}, {row.job}), {workers(row.request)}, Turns::kOneEach);
    CHECK(plan.jobs[0].workers == row.want);
    CHECK(plan.jobs[0].reason == row.want_reason);
    const int live = static_cast<int>(row.job.workers.size());
    CHECK(static_cast<int>(plan.jobs[0].victims.size()) == std::max(0, live - row.want));
  }
}

TEST_CASE("scarce room goes to each in turn, or job by job") {
  const ClusterSnapshot scarce = snapshot({cpu_node("n", 10)}, {running("b"), running("a"), running("c")});
  const std::vector<Request> requests{workers(8), workers(8), workers(1)};
  CHECK(counts(grant(scarce, requests, Turns::kOneEach)) == std::vector<int>{5, 4, 1});
  CHECK(counts(grant(scarce, requests, Turns::kJobByJob)) == std::vector<int>{8, 2, 0});
}

TEST_CASE("workers that exist are not moved for another job's request") {
  const ClusterSnapshot full = snapshot({cpu_node("n", 10)}, {running("a"), holding(running("b"), 8, "n")});
  CHECK(counts(grant(full, {workers(10), workers(10)}, Turns::kJobByJob)) == std::vector<int>{2, 8});
}

TEST_CASE("new workers go to nodes without GPUs first, then to where most is free") {
  std::vector<Node> nodes{gpu_node("g", 8, 100), cpu_node("small", 2), cpu_node("large", 4)};
  const Plan plan = grant(snapshot(nodes, {running("a")}), {workers(7)}, Turns::kOneEach);
  const auto on = [&](const std::string& node) {
    return std::count(plan.jobs[0].new_worker_nodes.begin(), plan.jobs[0].new_worker_nodes.end(), node);
  };
  CHECK(plan.jobs[0].new_worker_nodes[0] == "large");
  CHECK(on("large") == 4);
  CHECK(on("small") == 2);
  CHECK(on("g") == 1);
}

TEST_CASE("GPU hosts are left to their GPUs where the policy says so; workers that are there stay") {
  const ClusterSnapshot cluster = snapshot({gpu_node("g", 8, 100), cpu_node("n", 4)}, {holding(running("a"), 2, "g")});
  CHECK(counts(grant(cluster, {workers(9)}, Turns::kOneEach, WorkerNodes::kWithoutGpus)) == std::vector<int>{6});
  CHECK(counts(grant(cluster, {workers(9)}, Turns::kOneEach, WorkerNodes::kAll)) == std::vector<int>{9});
}

TEST_CASE("room that is no room, by situation") {
  Node cordoned = cpu_node("n", 10);
  cordoned.schedulable = false;
  Node taken = cpu_node("n", 10);
  taken.requested_by_others_millicores = 9500;
  Node overbooked = cpu_node("n", 10);
  overbooked.requested_by_others_millicores = 12000;
  struct Row {
    const char* situation;
    Node node;
    Job job;
    int want;
  };
  const Row rows[] = {
      {"cordoned", cordoned, running("a"), 0},
      {"cordoned: workers that are there stay", cordoned, holding(running("a"), 2, "n"), 2},
      {"half a core left", taken, running("a"), 0},
      {"more requested than there is", overbooked, running("a"), 0},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(counts(grant(snapshot({row.node}, {row.job}), {workers(9)}, Turns::kOneEach)) == std::vector<int>{row.want});
  }
}

TEST_CASE("a quota bounds new workers and keeps old ones") {
  Job a = running("a");
  a.quota = "team";
  Job b = holding(running("b"), 3, "n");
  b.quota = "team";
  ClusterSnapshot cluster = snapshot({cpu_node("n", 20)}, {a, b, running("c")});
  cluster.quotas = {{.name = "team", .worker_millicores = 5000}};
  const Plan bound = grant(cluster, {workers(6), workers(6), workers(6)}, Turns::kOneEach);
  CHECK(counts(bound) == std::vector<int>{1, 4, 6});
  CHECK(bound.jobs[0].reason == Reason::kQuota);
  CHECK(bound.jobs[2].reason == Reason::kNoMetrics);
  cluster.quotas[0].worker_millicores = 1000;
  CHECK(counts(grant(cluster, {workers(6), workers(6), workers(6)}, Turns::kOneEach)) == std::vector<int>{0, 3, 6});
}

TEST_CASE("a worker that finds no node leaves its quota to the others") {
  Job large = running("a"), small = running("b");
  large.quota = small.quota = "team";
  large.worker_millicores = 4000;
  ClusterSnapshot cluster = snapshot({cpu_node("n", 3)}, {large, small});
  cluster.quotas = {{.name = "team", .worker_millicores = 5000}};
  CHECK(counts(grant(cluster, {workers(1), workers(3)}, Turns::kOneEach)) == std::vector<int>{0, 3});
}

TEST_CASE("workers go in this order: unbound, not ready, youngest") {
  Job job = running("a");
  job = with_worker(job, "z-old", "n", true, 10);
  job = with_worker(job, "unbound", "", false, 5);
  job = with_worker(job, "a-young", "n", true, 500);
  job = with_worker(job, "starting", "n", false, 600);
  const std::vector<std::string> order{"unbound", "starting", "a-young", "z-old"};
  for (int left = 0; left <= 3; ++left) {
    const Plan plan = grant(snapshot({cpu_node("n", 10)}, {job}), {workers(left)}, Turns::kOneEach);
    CHECK(plan.jobs[0].victims == std::vector<std::string>(order.begin(), order.begin() + 4 - left));
  }
}

TEST_CASE("a pending worker is placed when there is room, and asked for again when not") {
  Job job = with_worker(holding(running("a"), 2, "n"), "pending", "", false, 900);
  const Plan room = grant(snapshot({cpu_node("n", 3)}, {job}), {workers(3)}, Turns::kOneEach);
  CHECK(room.jobs[0].workers == 3);
  CHECK(room.jobs[0].victims.empty());
  const Plan full = grant(snapshot({cpu_node("n", 2)}, {job}), {workers(3)}, Turns::kOneEach);
  CHECK(full.jobs[0].workers == 2);
  CHECK(full.jobs[0].victims == std::vector<std::string>{"pending"});
  CHECK(full.jobs[0].reason == Reason::kCpu);
}

TEST_CASE("pending workers, by how much room there is for them: the youngest go first, and new ones come last") {
  Job job = holding(running("a"), 1, "n");
  job = with_worker(job, "a-young", "", false, 900);
  job = with_worker(job, "z-old", "", false, 500);
  struct Row {
    const char* situation;
    int cores, request;
    std::vector<std::string> want_victims;
    int want_new;
  };
  const Row rows[] = {
      {"for none of them", 1, 3, {"a-young", "z-old"}, 0},
      {"for one", 2, 3, {"a-young"}, 0},
      {"for both: their places are no new workers'", 3, 3, {}, 0},
      {"for both, and two more are asked for", 9, 5, {}, 2},
      {"for both, and only one is asked for", 9, 2, {"a-young"}, 0},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    const Plan plan = grant(snapshot({cpu_node("n", row.cores)}, {job}), {workers(row.request)}, Turns::kOneEach);
    CHECK(plan.jobs[0].workers == std::min(row.cores, row.request));
    CHECK(plan.jobs[0].victims == row.want_victims);
    CHECK(std::ssize(plan.jobs[0].new_worker_nodes) == row.want_new);
  }
}

TEST_CASE("a worker whose node is taken has no successor yet, but one that was pending all along has its place") {
  const Job trainer = on_host(running("a"), "g", 4);
  const Job tenant = with_worker(holding(running("b"), 7, "g"), "pending", "", false, 900);
  const Plan plan = grant(snapshot({gpu_node("g", 8, 12), cpu_node("n", 4)}, {trainer, tenant}),
                          {workers(0), workers(8)}, Turns::kOneEach);
  CHECK(plan.jobs[1].workers == 7);  // six beside the trainer, and the one that waited
  CHECK(plan.jobs[1].victims == std::vector<std::string>{"b-6"});
  CHECK(plan.jobs[1].new_worker_nodes.empty());
}

TEST_CASE("draining workers are neither supply nor obstacle") {
  Job job = holding(running("a"), 3, "n");
  job.workers[0].draining = true;
  const Plan plan = grant(snapshot({cpu_node("n", 3)}, {job}), {workers(3)}, Turns::kOneEach);
  CHECK(plan.jobs[0].workers == 3);
  CHECK(plan.jobs[0].victims.empty());
  CHECK(plan.jobs[0].new_worker_nodes == std::vector<std::string>{"n"});
}

TEST_CASE("a trainer's own CPU comes before workers, and evicts them") {
  const Job trainer = on_host(running("a"), "g", 4);
  const Job tenant = holding(running("b"), 8, "g");
  const Plan plan = grant(snapshot({gpu_node("g", 8, 12), cpu_node("n", 4)}, {trainer, tenant}),
                          {workers(0), workers(8)}, Turns::kOneEach);
  CHECK(plan.jobs[0].local == std::vector<LocalCpu>{{"g", 6000, 6000}});
  // Six of eight keep their node. Successors come with the next decision: a plan cannot replace workers.
  CHECK(plan.jobs[1].workers == 6);
  CHECK(plan.jobs[1].victims.size() == 2);
  CHECK(plan.jobs[1].new_worker_nodes.empty());
}

TEST_CASE("shares are in proportion to GPUs, of what others leave") {
  Node node = gpu_node("g", 8, 24);
  node.requested_by_others_millicores = 8000;
  const std::vector<Node> all{node, cpu_node("c", 16)};
  const NodeIndex nodes(all);
  struct Row {
    const char* situation;
    TrainerHost host;
    std::int64_t want;
  };
  const Row rows[] = {
      {"all GPUs", {.node = "g", .gpus = 8}, 16000},
      {"three of eight", {.node = "g", .gpus = 3}, 6000},
      {"a node without GPUs: what it has", {.node = "c", .gpus = 0, .request_millicores = 700}, 700},
      {"an unknown node: what it has", {.node = "?", .gpus = 3, .request_millicores = 700}, 700},
      {"a node that is not known: what it has", {.node = "", .gpus = 3, .request_millicores = 700}, 700},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    CHECK(nodes.share_millicores(row.host) == row.want);
  }
}

TEST_CASE("feeders whose CPU is fixed are left alone") {
  Job job = on_host(running("a"), "g", 8);
  job.local_adjustable = false;
  CHECK(grant(snapshot({gpu_node("g", 8, 24)}, {job}), {workers(0)}, Turns::kOneEach).jobs[0].local.empty());
}

TEST_CASE("a local request beyond the node is cut to what is left, in the order of jobs") {
  const std::vector<Job> jobs{on_host(running("b"), "g", 4), on_host(running("a"), "g", 4)};
  const std::vector<Request> requests(2, Request{.local = std::vector<LocalCpu>{{"g", 9000, 9000}}});
  const Plan plan = grant(snapshot({gpu_node("g", 8, 12)}, jobs), requests, Turns::kOneEach);
  CHECK(plan.jobs[0].local[0].request_millicores == 9000);
  CHECK(plan.jobs[1].local[0].request_millicores == 3000);
  CHECK(plan.jobs[1].local[0].limit_millicores == 9000);
}

TEST_CASE("the order of nodes, jobs and workers carries no meaning") {
  std::vector<Node> nodes{cpu_node("x", 7), cpu_node("y", 7), gpu_node("g", 8, 24)};
  std::vector<Job> jobs{holding(running("a"), 3, "x"), on_host(running("b"), "g", 4), running("c")};
  const auto plan_of = [&] {
    std::vector<Request> requests;
    for (const Job& job : jobs) requests.push_back(workers(job.id.name == "a" ? 1 : 9));
    std::string text;
    for (const JobPlan& job : grant(snapshot(nodes, jobs), requests, Turns::kOneEach).jobs) {
      text += job.id.name + " " + std::to_string(job.workers);
      for (const std::string& name : job.victims) text += " -" + name;
      for (const std::string& name : job.new_worker_nodes) text += " +" + name;
    }
    return text;
  };
  const std::string want = plan_of();
  std::reverse(nodes.begin(), nodes.end());
  std::rotate(jobs.begin(), jobs.begin() + 1, jobs.end());
  for (Job& job : jobs) std::reverse(job.workers.begin(), job.workers.end());
  CHECK(plan_of() == want);
}

}  // namespace
}  // namespace sluice::scheduler
