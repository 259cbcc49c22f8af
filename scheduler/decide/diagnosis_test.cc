#include "scheduler/decide/diagnosis.h"

#include <algorithm>
#include <fstream>

#include "scheduler/decide/decide.h"
#include "scheduler/testing/builders.h"
#include "src/base/testing/catch.h"

namespace sluice::scheduler::testing {
namespace {

// Eight ranks on a host with 24 cores; they need 60, and wait for them.
Job starving() {
  Job job = MakeJob("a").gpus(8).obj();
  job.ranks = 8;
  job.local_adjustable = true;
  job.hosts = {{"h", 8, 8, 24'000, 24'000}};
  job.observation.measurement =
      FluidJob{.demand = 60'000, .local_rate = 1000, .local_cores = 24}.steady(0, kNowSeconds - 5);
  return job;
}

Measurement& seen(Job& job) { return *job.observation.measurement; }

// As if the trainer waited for so much of its time, and computed for so much.
void trains(Job& job, double wait_share, double compute_share) {
  seen(job).wait_share = wait_share;
  seen(job).compute_share = compute_share;
}

// Remote workers send so much to its trainers, whose CPU is idle.
void receives(Job& job, double samples_per_second) {
  seen(job).local->busy_cores = 4;
  seen(job).remote = SourceRate{samples_per_second, 0};
  job.bytes_per_sample = 150'000;
}

// Its ranks stand on two hosts.
void stands_on_two(Job& job, int on_first, int on_second) {
  job.hosts = {{"g", on_first, on_first, 12'000, 12'000}, {"h", on_second, on_second, 12'000, 12'000}};
}

TEST_CASE("what limits a job, and the whole of the evidence") {
  struct Row {
    const char* situation;
    void (*happens)(Job&);
    Bottleneck want;
    const char* want_evidence;
  };
  const Row rows[] = {
      {"its cores are at work", [](Job&) {}, Bottleneck::kDataBoundCpu, "waits 60 %; 24 of 24 cores at work"},
      {"half of its cores are: still CPU", [](Job& job) { seen(job).local->busy_cores = 12; },
       Bottleneck::kDataBoundCpu, "waits 60 %; 12 of 24 cores at work"},
      {"less than half of them", [](Job& job) { seen(job).local->busy_cores = 11; }, Bottleneck::kDataBoundOther,
       "waits 60 %; 11 of 24 cores at work"},
      {"it may use all of the host, but only its request is sure to be there",
       [](Job& job) { job.hosts[0].limit_millicores = 96'000; }, Bottleneck::kDataBoundCpu,
       "waits 60 %; 24 of 24 cores at work"},
      {"of 13 idle cores six threads read",
       [](Job& job) { seen(job).local->busy_cores = 11, seen(job).blocked_threads = 6; }, Bottleneck::kDataBoundOther,
       "waits 60 %; 11 of 24 cores at work"},
      {"of 13 idle cores seven threads read",
       [](Job& job) { seen(job).local->busy_cores = 11, seen(job).blocked_threads = 7; }, Bottleneck::kDataBoundStorage,
       "waits 60 %; 11 of 24 cores at work; 7 threads blocked in reads"},
      {"threads read, and the cores are at work all the same: CPU first",
       [](Job& job) { seen(job).blocked_threads = 40; }, Bottleneck::kDataBoundCpu,
       "waits 60 %; 24 of 24 cores at work"},
      {"the network is nearly full", [](Job& job) { receives(job, 7600); }, Bottleneck::kDataBoundNetwork,
       "waits 60 %; 4 of 24 cores at work; a host's network is 91 % full"},
      {"the network has room", [](Job& job) { receives(job, 7400); }, Bottleneck::kDataBoundOther,
       "waits 60 %; 4 of 24 cores at work"},
      {"the same traffic shared by two hosts", [](Job& job) { receives(job, 10'000), stands_on_two(job, 4, 4); },
       Bottleneck::kDataBoundOther, "waits 60 %; 4 of 24 cores at work"},
      {"the fuller of two hosts", [](Job& job) { receives(job, 10'000), stands_on_two(job, 7, 1); },
       Bottleneck::kDataBoundNetwork, "waits 60 %; 4 of 24 cores at work; a host's network is 105 % full"},
      {"half of its workers stand on the host itself: their traffic crosses no network",
       [](Job& job) {
         receives(job, 10'000);
         job.workers = {{"w0", job.hosts[0].node, true}, {"w1", "elsewhere", true}};
       },
       Bottleneck::kDataBoundOther, "waits 60 %; 4 of 26 cores at work"},
      {"its host is none of those that are known",
       [](Job& job) { receives(job, 10'000), job.hosts[0].node = "elsewhere"; }, Bottleneck::kDataBoundOther,
       "waits 60 %; 4 of 24 cores at work"},
      {"the size of a sample is not known", [](Job& job) { receives(job, 10'000), job.bytes_per_sample.reset(); },
       Bottleneck::kDataBoundOther, "waits 60 %; 4 of 24 cores at work"},
      {"its executors are not measured", [](Job& job) { seen(job).local.reset(); }, Bottleneck::kUnknown,
       "waits 60 %; its executors are not measured"},
      {"only the remote ones are",
       [](Job& job) {
         seen(job).local.reset(), seen(job).remote = SourceRate{16'000, 20};
       },
       Bottleneck::kDataBoundCpu, "waits 60 %; 20 of 24 cores at work"},
      {"never waits, computes all the time", [](Job& job) { trains(job, 0.005, 0.95); }, Bottleneck::kGpuBound,
       "waits 1 %, computes 95 % of the time"},
      {"never waits, and evaluates a fifth of the time", [](Job& job) { trains(job, 0.004, 0.8); },
       Bottleneck::kNotDataBound, "waits 0 %, computes 80 % of the time"},
      {"waits a little", [](Job& job) { trains(job, 0.02, 0.98); }, Bottleneck::kNotDataBound,
       "waits 2 %, computes 98 % of the time"},
      {"no metrics",
       [](Job& job) {
         job.observation = {std::nullopt, "Prometheus is away"};
       },
       Bottleneck::kUnknown, "Prometheus is away"},
      {"suspended", [](Job& job) { job.running = false; }, Bottleneck::kUnknown, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    Job job = starving();
    row.happens(job);
    ClusterSnapshot snapshot{kNowSeconds, {}, {job}, {}, {}};
    for (const char* name : {"g", "h"})
      snapshot.nodes.push_back(
          {.name = name, .allocatable_millicores = 24'000, .gpus = 8, .network_bytes_per_second = 1.25e9});
    const JobPlan plan = decide(snapshot, {}).jobs[0];
    CHECK(to_string(plan.bottleneck) == to_string(row.want));
    CHECK(plan.evidence == row.want_evidence);
  }
}

TEST_CASE("what helps is what docs/scheduling.md says") {
  std::ifstream page("docs/scheduling.md");
  std::string line, table;
  while (std::getline(page, line)) table += line.starts_with("| `DataBound") ? line + "\n" : "";
  for (const Bottleneck bottleneck : {Bottleneck::kDataBoundStorage, Bottleneck::kDataBoundNetwork}) {
    const std::string name(to_string(bottleneck));
    const std::string row = table.substr(std::min(table.size(), table.find("| `" + name + "`")));
    CHECK_THAT(row.substr(0, row.find('\n')), Catch::EndsWith("| " + std::string(remedy_of(bottleneck)) + " |"));
  }
  CHECK(remedy_of(Bottleneck::kDataBoundCpu).empty());
}

}  // namespace
}  // namespace sluice::scheduler::testing
