// What the HPA is shown of a job's workers, and when it looks: hpa.cc.
#include <vector>

#include "scheduler/simulator/policies/hpa.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

constexpr double kNow = 10'000;  // the end of the metric window, which is 30 s long

// A worker of one core that started long ago and has been ready since `ready_since`.
Worker ready_since(double seconds) {
  return {.node = "n", .ready = true, .created_at_seconds = 100, .ready_since_seconds = seconds};
}

Worker young_ready_since(double seconds) {
  Worker worker = ready_since(seconds);
  worker.created_at_seconds = seconds - 20;
  return worker;
}

Worker draining() {
  Worker worker = ready_since(200);
  worker.draining = true;
  return worker;
}

Worker starting() { return {.node = "n", .created_at_seconds = 100}; }

Worker unbound() { return {.created_at_seconds = kNow - 60}; }

std::vector<Worker> operator*(int count, const Worker& worker) { return std::vector<Worker>(count, worker); }

std::vector<Worker> operator+(std::vector<Worker> a, const std::vector<Worker>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

ClusterSnapshot cluster_of(std::vector<Worker> workers, std::optional<double> busy_cores) {
  Job job{.id = {"default", "a"}, .running = true};
  job.max_workers = 1000;
  for (std::size_t i = 0; i < workers.size(); ++i) workers[i].name = "w" + std::to_string(i);
  job.workers = std::move(workers);
  job.allocated_workers = static_cast<int>(job.workers.size());
  Measurement m{.window_end_seconds = kNow, .window_seconds = 30};
  if (busy_cores) m.remote = SourceRate{1000 * *busy_cores, *busy_cores};
  job.observation = {m, ""};
  return {.taken_at_seconds = kNow, .nodes = {{.name = "n", .allocatable_millicores = 900'000}}, .jobs = {job}};
}

int replicas(const ClusterSnapshot& cluster) { return make_hpa_policy()->decide(cluster).jobs[0].workers; }

TEST_CASE("HPA: ten replicas at one sync, by what their pods show") {
  struct Row {
    const char* situation;
    std::vector<Worker> workers;
    std::optional<double> busy_cores;
    int want;
  };
  const Row rows[] = {
      {"90 % busy: 11.25 of them", 10 * ready_since(200), 9, 12},
      {"75 %: within the tolerance", 10 * ready_since(200), 7.5, 10},
      {"no series of remote work: not zero, nothing", 10 * ready_since(200), std::nullopt, 10},
      {"half of them ready for half of the window: 7.5 cores in it are 100 %",
       5 * ready_since(200) + 5 * ready_since(kNow - 15), 7.5, 13},
      {"the same, but just started: their first window counts as idle, which takes the reason away",
       5 * ready_since(200) + 5 * young_ready_since(kNow - 15), 7.5, 10},
      {"just started, and ready for a whole window: they count",
       5 * ready_since(200) + 5 * young_ready_since(kNow - 30), 10, 13},
      {"more busy than ten can be: others worked in the window, and have left", 10 * ready_since(200), 20, 13},
      {"five that became ready after the window have no metric, which counts as idle",
       5 * ready_since(200) + 5 * ready_since(kNow + 5), 5, 10},
      {"five that are not ready have none either", 5 * ready_since(200) + 5 * starting(), 5, 10},
      {"five have no node: pending, idle", 5 * ready_since(200) + 5 * unbound(), 5, 10},
      {"five were never created for want of room: the same", 5 * ready_since(200), 5, 10},
      {"all are starting: no metric at all", 10 * starting(), 5, 10},
      {"five are leaving; they worked in the window and are no replicas", 10 * ready_since(200) + 5 * draining(), 13.5,
       12},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    ClusterSnapshot cluster = cluster_of(row.workers, row.busy_cores);
    cluster.jobs[0].min_workers = 10;  // which is what a controller that has just started takes for its present number
    CHECK(replicas(cluster) == row.want);
  }
}

TEST_CASE("HPA: the utilisation is of the workers' own size") {
  ClusterSnapshot cluster = cluster_of(10 * ready_since(200), 18);
  cluster.jobs[0].worker_millicores = 2000;
  cluster.jobs[0].min_workers = 10;
  CHECK(replicas(cluster) == 12);  // 90 % of two cores each
  cluster.jobs[0].worker_millicores = 4000;
  CHECK(replicas(cluster) == 10);  // 45 %, and no less than the minimum
}

TEST_CASE("HPA: the job's own bounds, by situation") {
  struct Row {
    const char* situation;
    int min, max, want;
  };
  const Row rows[] = {
      {"none: one, and from one to two", 0, 1000, 2},
      {"the maximum caps the step", 10, 11, 11},
      {"a maximum of one", 0, 1, 1},
      {"no workers allowed at all: it keeps to one, and the job to none", 0, 0, 0},
  };
  for (const Row& row : rows) {
    INFO(row.situation);
    ClusterSnapshot cluster = cluster_of(std::max(1, row.min) * ready_since(200), std::max(1, row.min));
    cluster.jobs[0].min_workers = row.min;
    cluster.jobs[0].max_workers = row.max;
    CHECK(replicas(cluster) == row.want);
  }
}

TEST_CASE("HPA: it looks every 15 s, and a sync is counted from the last one") {
  const auto policy = make_hpa_policy();
  struct Row {
    double second;
    int want;
  };
  // As many saturated pods as it has asked for: a quarter more at each sync, rounded up.
  const Row rows[] = {{0, 2}, {5, 2}, {14.9, 2}, {15, 3}, {20, 3}, {31, 4}, {45, 4}, {46, 5}, {60.9, 5}, {61, 7}};
  int workers = 1;
  for (const Row& row : rows) {
    INFO("second " << row.second);
    ClusterSnapshot cluster = cluster_of(workers * ready_since(200), workers);
    cluster.taken_at_seconds = kNow + row.second;
    cluster.jobs[0].observation.measurement->window_end_seconds = kNow + row.second;
    workers = policy->decide(cluster).jobs[0].workers;
    CHECK(workers == row.want);
  }
}

// Ten replicas were set five minutes ago, by a minimum that has been lowered to one since.
struct Lowered {
  Lowered() {
    ClusterSnapshot before = cluster_of(10 * ready_since(200), 8);
    before.taken_at_seconds = kNow - 315;
    before.jobs[0].observation.measurement->window_end_seconds = kNow - 315;
    before.jobs[0].min_workers = 10;
    REQUIRE(policy->decide(before).jobs[0].workers == 10);
  }

  int replicas(const std::vector<Worker>& workers, double busy_cores) const {
    return policy->decide(cluster_of(workers, busy_cores)).jobs[0].workers;
  }

  std::unique_ptr<Policy> policy = make_hpa_policy();
};

TEST_CASE("HPA: pods without a place are idle on the way up, and nothing on the way down") {
  // Five at 40 %: two and a half are enough. Those that are not there are not taken for busy.
  CHECK(Lowered().replicas(5 * ready_since(200) + 5 * unbound(), 2) == 3);
  CHECK(Lowered().replicas(5 * ready_since(200), 2) == 3);
  // Those that have a place and no metric are.
  CHECK(Lowered().replicas(5 * ready_since(200) + 5 * starting(), 2) == 9);
  // Five that are saturated want a sixth and a seventh, but ten were set, and five of them are idle.
  CHECK(Lowered().replicas(5 * ready_since(200) + 5 * unbound(), 5) == 10);
  CHECK(Lowered().replicas(5 * ready_since(200), 5) == 10);
}

TEST_CASE("HPA: what the maximum cut off was never asked for") {
  const auto policy = make_hpa_policy();
  ClusterSnapshot cluster = cluster_of(5 * ready_since(200), 5);
  cluster.jobs[0].min_workers = cluster.jobs[0].max_workers = 5;
  CHECK(policy->decide(cluster).jobs[0].workers == 5);
  cluster.jobs[0].max_workers = 100;
  cluster.taken_at_seconds += 1;
  CHECK(policy->decide(cluster).jobs[0].workers == 5);  // no sync yet
}

}  // namespace
}  // namespace sluice::scheduler
