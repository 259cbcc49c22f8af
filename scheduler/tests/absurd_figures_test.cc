// What anybody's pod may export: figures that no job has. A plan stays a plan, and the other jobs' is the same.
#include <cmath>
#include <functional>

#include "scheduler/testing/builders.h"
#include "scheduler/testing/rules.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

struct Figure {
  const char* name;
  std::function<void(Measurement&, double)> set;
};
const Figure kFigures[] = {
    {"samples per second", [](Measurement& m, double value) { m.samples_per_second = value; }},
    {"computing share", [](Measurement& m, double value) { m.compute_share = value; }},
    {"waiting share", [](Measurement& m, double value) { m.wait_share = value; }},
    {"batches", [](Measurement& m, double value) { m.batches_in_window = value; }},
    {"window", [](Measurement& m, double value) { m.window_seconds = value; }},
    {"samples of the feeders", [](Measurement& m, double value) { m.local->samples_per_second = value; }},
    {"busy cores of the feeders", [](Measurement& m, double value) { m.local->busy_cores = value; }},
    {"samples of the workers",
     [](Measurement& m, double value) {
       m.remote = SourceRate{value, 1};
     }},
    {"busy cores of the workers",
     [](Measurement& m, double value) {
       m.remote = SourceRate{100, value};
     }},
    {"workers at work", [](Measurement& m, double value) { m.workers_at_work = value; }},
    {"depth of the queue", [](Measurement& m, double value) {
       m.queue = PrefetchQueue{value, 32};
     }}};

Job job(const std::string& name, const FluidJob& physics) {
  Job made = MakeJob(name).gpus(1).max(8).measures(physics.steady(0, kNowSeconds - 5)).obj();
  made.hosts = {{"gpu", 1, 1, 1000, 4000}};
  made.local_adjustable = true;
  return made;
}

TEST_CASE("a figure that no job has breaks no plan, alone or with another one") {
  const FluidJob physics{.demand = 4000};
  for (const Figure& first : kFigures)
    for (const Figure& second : kFigures)
      for (const double one : {1e-300, 1e-12, 1e12, 1e300})
        for (const double other : {1e-300, 1e300}) {
          INFO(first.name << " " << one << ", " << second.name << " " << other);
          Job odd = job("odd", physics);
          first.set(*odd.observation.measurement, one);
          second.set(*odd.observation.measurement, other);
          ClusterSnapshot snapshot = MakeSnapshot().node("gpu", 16000).node("cpu", 16000).obj();
          snapshot.jobs = {odd, job("plain", physics)};
          for (int round = 0; round < 2; ++round) {
            const Plan plan = decide(snapshot, {});
            REQUIRE(broken_rules(snapshot, plan).empty());
            snapshot = applied(snapshot, plan);
            snapshot.taken_at_seconds += 15;
            for (Job& each : snapshot.jobs) each.observation.measurement->window_end_seconds += 15;
          }
        }
}

}  // namespace
}  // namespace sluice::scheduler::testing
