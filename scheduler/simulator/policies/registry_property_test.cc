// What every policy keeps to on random clusters, whatever its algorithm; and what must make no difference to any.
#include "scheduler/simulator/policies/registry.h"

#include <algorithm>
#include <limits>
#include <random>

#include "scheduler/testing/builders.h"
#include "scheduler/testing/clusters.h"
#include "scheduler/testing/properties.h"
#include "scheduler/testing/rules.h"

namespace sluice::scheduler::testing {
namespace {

// Baselines know neither memory nor networks nor money; what they do with jobs that are left alone is grant()'s
// business.
ClusterShape shape() {
  ClusterShape shape = everything();
  shape.memory = shape.networks = shape.budget = shape.modes = shape.groups = false;
  return shape;
}

// One policy on one cluster, a decision every 15 s that is carried out at once.
class Course {
 public:
  Course(std::string_view policy_name, ClusterSnapshot start)
      : policy_(*make_policy(policy_name, {})), snapshot_(std::move(start)) {}

  Plan decide() { return policy_->decide(snapshot_); }

  void carry_out(const Plan& plan) {
    snapshot_ = applied(std::move(snapshot_), plan);
    snapshot_.taken_at_seconds += 15;
    for (Job& job : snapshot_.jobs)
      if (job.observation.measurement) job.observation.measurement->window_end_seconds += 15;
  }

  void run(int decisions) {
    for (int i = 0; i < decisions; ++i) carry_out(decide());
  }

  ClusterSnapshot& snapshot() { return snapshot_; }

 private:
  std::unique_ptr<Policy> policy_;
  ClusterSnapshot snapshot_;
};

// For each policy and random cluster.
void every_policy(const std::string& what, const std::function<void(std::string_view name, unsigned seed)>& body) {
  property(what, [&](unsigned seed) {
    for (const std::string_view name : policy_names()) {
      RC_LOG() << name << '\n';
      body(name, seed);
    }
  });
}

// All that is carried out of a plan.
std::string actions_of(const Plan& plan) {
  std::string text;
  for (const JobPlan& job : plan.jobs) {
    text += job.id.name + ' ' + std::to_string(job.workers);
    for (const std::string& victim : job.victims) text += " -" + victim;
    for (const std::string& node : job.new_worker_nodes) text += " +" + node;
    for (const LocalCpu& local : job.local)
      text += ' ' + local.node + ':' + std::to_string(local.request_millicores) + ".." +
              std::to_string(local.limit_millicores);
    text += '\n';
  }
  return text;
}

// But for the sentence, which ends in a full stop only with us.
std::vector<std::string> broken_by(const ClusterSnapshot& snapshot, const Plan& plan) {
  std::vector<std::string> broken = broken_rules(snapshot, plan);
  std::erase_if(broken, [](const std::string& rule) { return rule.find("a sentence for") != std::string::npos; });
  return broken;
}

void shuffle(ClusterSnapshot& snapshot, unsigned seed) {
  std::mt19937 random(seed);
  std::shuffle(snapshot.nodes.begin(), snapshot.nodes.end(), random);
  std::shuffle(snapshot.jobs.begin(), snapshot.jobs.end(), random);
  for (Job& job : snapshot.jobs) std::shuffle(job.workers.begin(), job.workers.end(), random);
}

TEST_CASE("every policy: no node is given more than it has, no quota and no maximum is exceeded, nothing is negative") {
  every_policy("rules", [](std::string_view name, unsigned seed) {
    Course course(name, random_cluster(seed, shape()));
    for (int i = 0; i < 6; ++i) {
      const Plan plan = course.decide();
      RC_ASSERT(broken_by(course.snapshot(), plan) == std::vector<std::string>{});
      course.carry_out(plan);
    }
  });
}

TEST_CASE("every policy: a plan that stops workers stops no more than have to go, and starts none") {
  every_policy("victims", [](std::string_view name, unsigned seed) {
    Course course(name, random_cluster(seed, shape()));
    for (int i = 0; i < 4; ++i) {
      const Plan plan = course.decide();
      for (const JobPlan& its : plan.jobs) {
        const Job& job = job_of(course.snapshot(), its.id);
        const auto live =
            std::count_if(job.workers.begin(), job.workers.end(), [](const Worker& w) { return !w.draining; });
        RC_ASSERT(std::ssize(its.victims) == std::max<std::ptrdiff_t>(0, live - its.workers));
        if (!its.victims.empty()) RC_ASSERT(its.new_worker_nodes.empty());
      }
      course.carry_out(plan);
    }
  });
}

TEST_CASE("every policy: the order of nodes, jobs and workers means nothing, over a whole course") {
  every_policy("order", [](std::string_view name, unsigned seed) {
    Course sorted(name, random_cluster(seed, shape())), shuffled(name, random_cluster(seed, shape()));
    for (unsigned i = 0; i < 5; ++i) {
      shuffle(shuffled.snapshot(), seed + i);
      const Plan plan = sorted.decide(), other = shuffled.decide();
      RC_ASSERT(text_of(plan) == text_of(other));
      sorted.carry_out(plan);
      shuffled.carry_out(other);
    }
  });
}

TEST_CASE("every policy that acts at most once in an instant: asked again, it says the same") {
  every_policy("again", [](std::string_view name, unsigned seed) {
    // KEDA's own loop and its HPA act one after the other; FastFlow's second profile may follow its first one at once.
    if (name.starts_with("keda") || name == "fastflow") return;
    Course course(name, random_cluster(seed, shape()));
    for (int i = 0; i < 4; ++i) {
      const Plan plan = course.decide();
      RC_ASSERT(actions_of(course.decide()) == actions_of(plan));
      course.carry_out(plan);
    }
  });
}

TEST_CASE("every policy: a job that does not run, or no longer, has no workers, and its host belongs to the others") {
  every_policy("suspended", [](std::string_view name, unsigned seed) {
    Course course(name, random_cluster(seed, shape()));
    course.run(3);
    std::mt19937 random(seed);
    for (Job& job : course.snapshot().jobs)
      if (random() % 2 == 0) job.running = false, job.hosts.clear();
    const Plan plan = course.decide();
    for (const JobPlan& its : plan.jobs) {
      const Job& job = job_of(course.snapshot(), its.id);
      if (job.running) continue;
      RC_ASSERT(its.workers == 0);
      RC_ASSERT(its.local.empty());
      RC_ASSERT(staying(job, its).empty());
    }
    RC_ASSERT(broken_by(course.snapshot(), plan) == std::vector<std::string>{});
  });
}

TEST_CASE("every policy: nodes on which nothing can be put make no difference") {
  every_policy("useless nodes", [](std::string_view name, unsigned seed) {
    Course course(name, random_cluster(seed, shape())), beside(name, random_cluster(seed, shape()));
    auto& nodes = beside.snapshot().nodes;
    nodes.push_back({.name = "a-cordoned", .allocatable_millicores = 64'000, .schedulable = false});
    nodes.push_back({.name = "b-full", .allocatable_millicores = 64'000, .requested_by_others_millicores = 64'000});
    nodes.push_back({.name = "c-over-full", .allocatable_millicores = 8000, .requested_by_others_millicores = 16'000});
    nodes.push_back({.name = "d-without-cpu", .gpus = 8});
    for (int i = 0; i < 4; ++i) {
      const Plan plan = course.decide(), other = beside.decide();
      RC_ASSERT(actions_of(plan) == actions_of(other));
      course.carry_out(plan);
      beside.carry_out(other);
    }
  });
}

TEST_CASE("every policy: a node that vanished under its workers is given nothing, and the rest can be carried out") {
  every_policy("vanished", [](std::string_view name, unsigned seed) {
    Course course(name, random_cluster(seed, shape()));
    course.run(4);
    auto& nodes = course.snapshot().nodes;
    const std::string gone = nodes[seed % nodes.size()].name;
    std::erase_if(nodes, [&](const Node& node) { return node.name == gone; });
    for (int i = 0; i < 3; ++i) {
      const Plan plan = course.decide();
      RC_ASSERT(broken_by(course.snapshot(), plan) == std::vector<std::string>{});
      for (const JobPlan& its : plan.jobs)
        for (const std::string& node : its.new_worker_nodes) RC_ASSERT(node != gone);
      course.carry_out(plan);
    }
  });
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What a query of Prometheus can answer, 0/0 and 1/0 included, and what no counter's rate can be.
struct Spoilt {
  const char* what;
  void (*spoil)(Measurement&);
};

const Spoilt kSpoilt[] = {
    {"samples NaN", [](Measurement& m) { m.samples_per_second = kNan; }},
    {"samples infinite", [](Measurement& m) { m.samples_per_second = kInfinity; }},
    {"samples negative", [](Measurement& m) { m.samples_per_second = -1; }},
    {"computing NaN", [](Measurement& m) { m.compute_share = kNan; }},
    {"computing negative", [](Measurement& m) { m.compute_share = -0.1; }},
    {"waiting NaN", [](Measurement& m) { m.wait_share = kNan; }},
    {"window NaN", [](Measurement& m) { m.window_seconds = kNan; }},
    {"feeders' rate NaN",
     [](Measurement& m) {
       m.local = SourceRate{kNan, 1};
     }},
    {"feeders' CPU negative",
     [](Measurement& m) {
       m.local = SourceRate{100, -1};
     }},
    {"workers' rate infinite",
     [](Measurement& m) {
       m.remote = SourceRate{kInfinity, 1};
     }},
    {"workers' CPU NaN",
     [](Measurement& m) {
       m.remote = SourceRate{100, kNan};
     }},
    {"workers' CPU negative",
     [](Measurement& m) {
       m.remote = SourceRate{100, -4};
     }},
    {"queue NaN",
     [](Measurement& m) {
       m.queue = {kNan, 16};
     }},
    {"queue negative",
     [](Measurement& m) {
       m.queue = {-1e9, 16};
     }},
    {"queue's capacity infinite",
     [](Measurement& m) {
       m.queue = {0, kInfinity};
     }},
};

TEST_CASE("every policy: a measurement with a figure that is no number is as good as none, never as zero") {
  every_policy("no number", [](std::string_view name, unsigned seed) {
    const Spoilt& spoilt = kSpoilt[seed % std::size(kSpoilt)];
    RC_LOG() << spoilt.what << '\n';
    Course with(name, random_cluster(seed, shape())), without(name, random_cluster(seed, shape()));
    with.run(4);
    without.run(4);
    for (int i = 0; i < 3; ++i) {
      for (Job& job : with.snapshot().jobs)
        if (job.observation.measurement) spoilt.spoil(*job.observation.measurement);
      for (Job& job : without.snapshot().jobs) job.observation = {std::nullopt, "away"};
      const Plan plan = with.decide(), want = without.decide();
      RC_ASSERT(actions_of(plan) == actions_of(want));
      with.carry_out(plan);
      without.carry_out(want);
    }
  });
}

TEST_CASE("every policy: figures that are numbers, but absurd ones, still give a plan that can be carried out") {
  every_policy("absurd", [](std::string_view name, unsigned seed) {
    Course course(name, random_cluster(seed, shape()));
    std::mt19937 random(seed);
    const double values[] = {0, 1e-30, 1e-9, 1e9, 1e18, 1e30};
    for (int i = 0; i < 5; ++i) {
      for (Job& job : course.snapshot().jobs) {
        if (!job.observation.measurement) continue;
        Measurement& m = *job.observation.measurement;
        if (!m.remote) m.remote = SourceRate{100, 1};
        double* figures[] = {&m.samples_per_second,        &m.compute_share,     &m.wait_share,
                             &m.local->samples_per_second, &m.local->busy_cores, &m.remote->samples_per_second,
                             &m.remote->busy_cores,        &m.queue->depth,      &m.queue->capacity};
        *figures[random() % std::size(figures)] = values[random() % std::size(values)];
      }
      const Plan plan = course.decide();
      RC_ASSERT(broken_by(course.snapshot(), plan) == std::vector<std::string>{});
      course.carry_out(plan);
    }
  });
}

}  // namespace
}  // namespace sluice::scheduler::testing
