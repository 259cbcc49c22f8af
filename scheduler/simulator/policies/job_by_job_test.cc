#include "scheduler/simulator/policies/job_by_job.h"

#include "src/base/testing/catch.h"

namespace sluice::scheduler {
namespace {

// Wishes for as many workers as it has been asked, and writes down what it saw.
struct Counting {
  std::vector<std::string>* seen;
  int calls = 0;

  Request request(const Job& job, const Scene& scene) {
    ++calls;
    seen->push_back(job.id.name + " at " + std::to_string(static_cast<int>(scene.now_seconds)) +
                    (scene.nodes.find("n") != nullptr ? "" : " without nodes"));
    return {.workers = calls};
  }
};

class Scenario {
 public:
  explicit Scenario(WorkerNodes worker_nodes = WorkerNodes::kWithoutGpus)
      : policy_(
            "counting", Turns::kOneEach, [this] { return Counting{&seen_}; }, worker_nodes) {
    snapshot_.nodes = {{.name = "n", .allocatable_millicores = 100'000}};
  }

  Job& job(const std::string& name_space, const std::string& name) {
    for (Job& job : snapshot_.jobs)
      if (job.id == JobId{name_space, name}) return job;
    Job job{.id = {name_space, name}, .running = true};
    job.max_workers = 100;
    snapshot_.jobs.push_back(job);
    return snapshot_.jobs.back();
  }

  // The workers of all jobs, in the order of their ids.
  std::vector<int> decide() {
    snapshot_.taken_at_seconds += 15;
    seen_.clear();
    std::vector<int> workers;
    for (const JobPlan& plan : policy_.decide(snapshot_).jobs) workers.push_back(plan.workers);
    return workers;
  }

  ClusterSnapshot& snapshot() { return snapshot_; }
  const std::vector<std::string>& seen() const { return seen_; }
  Policy& policy() { return policy_; }

 private:
  std::vector<std::string> seen_;
  JobByJobPolicy<Counting> policy_;
  ClusterSnapshot snapshot_;
};

using Counts = std::vector<int>;

TEST_CASE("a controller for each job, asked once a decision while the job runs, and forgotten when it does not") {
  Scenario s;
  s.job("team", "a");
  CHECK(s.decide() == Counts{1});
  s.job("team", "b");
  CHECK(s.decide() == Counts{2, 1});
  CHECK(s.seen() == std::vector<std::string>{"a at 30", "b at 30"});
  s.job("team", "a").running = false;
  CHECK(s.decide() == Counts{0, 2});
  CHECK(s.seen() == std::vector<std::string>{"b at 45"});
  s.job("team", "a").running = true;
  CHECK(s.decide() == Counts{1, 3});
}

TEST_CASE("a job that is not in the snapshot once is another one when it comes back") {
  Scenario s;
  s.job("team", "a");
  s.decide();
  const Job away = s.snapshot().jobs[0];
  s.snapshot().jobs.clear();
  CHECK(s.decide().empty());
  s.snapshot().jobs = {away};
  CHECK(s.decide() == Counts{1});
}

TEST_CASE("jobs of one name in two namespaces are two") {
  Scenario s;
  s.job("blue", "a");
  s.decide();
  s.job("red", "a");
  CHECK(s.decide() == Counts{2, 1});
}

TEST_CASE("a controller goes with its job, wherever the snapshot has it") {
  Scenario s;
  s.job("team", "b");
  s.decide();
  s.job("team", "a");
  std::swap(s.snapshot().jobs[0], s.snapshot().jobs[1]);
  CHECK(s.decide() == Counts{1, 2});
}

TEST_CASE("a request that found no room is not remembered against the job: it is asked again") {
  Scenario s;
  s.snapshot().nodes[0].allocatable_millicores = 1000;
  s.job("team", "a");
  CHECK(s.decide() == Counts{1});
  CHECK(s.decide() == Counts{1});
  s.snapshot().nodes[0].allocatable_millicores = 100'000;
  CHECK(s.decide() == Counts{3});
}

TEST_CASE("GPU hosts are for their GPUs unless the policy says otherwise") {
  for (const WorkerNodes where : {WorkerNodes::kWithoutGpus, WorkerNodes::kAll}) {
    Scenario s(where);
    s.snapshot().nodes[0].gpus = 8;
    s.job("team", "a");
    CHECK(s.decide() == Counts{where == WorkerNodes::kAll ? 1 : 0});
  }
}

TEST_CASE("it is known by its name") { CHECK(Scenario().policy().name() == "counting"); }

}  // namespace
}  // namespace sluice::scheduler
