#include "scheduler/simulator/input/scenario.h"

#include <cmath>

#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::simulator {
namespace {

using sluice::testing::TemporaryDirectory;

constexpr const char* kScenario = R"(name: small
summary: two hosts
cluster:
  nodes:
    - {name: gpu, count: 2, gpus: 8, cores: 24, network_gbps: 100}
    - {name: cpu, cores: 64, spot: true}
  physics: {metrics_noise: 0.1, worker_startup_seconds: 30, gpu_price_includes_host: true}
generate:
  jobs: 3000
  load: 0.5
  burstiness: 2
  models: {lm: 3, resnet-18: 1}
incidents:
  - {kind: drain, node: cpu-0, at_seconds: 100, for_seconds: 50}
goals:
  - {figure: jct_gain, at_least: 2}
reference: {jct_gain: 2.5}
)";

const Profiles kProfiles = {{"lm", {0.5, 0.02, 40}}, {"resnet-18", {7.2, 2.3, 20}}};

TEST_CASE("A scenario names cluster, physics, jobs, incidents and goals") {
  const auto scenario = parse_scenario(kScenario, "s.yaml");
  REQUIRE(scenario.ok());
  CHECK(scenario->cluster.gpus() == 16);
  CHECK(scenario->cluster.cores() == 112);
  CHECK(scenario->cluster.groups[1].spot);
  CHECK(scenario->cluster.physics.metrics_noise == 0.1);
  CHECK(scenario->cluster.physics.gpu_price_includes_host);
  CHECK(scenario->incidents[0].kind == IncidentKind::kCordon);
  CHECK(scenario->goals[0].at_least == 2);
  CHECK_FALSE(scenario->goals[0].at_most);
  CHECK(scenario->reference.at("jct_gain") == 2.5);
}

TEST_CASE("Data sets and their cache belong to the cluster, and a job names the one that it reads") {
  const std::string text =
      "name: a\n"
      "cluster:\n"
      "  nodes: [{name: g, gpus: 4, cores: 8}]\n"
      "  data_sets: [{name: photos, gigabytes: 150}, {name: speech, gigabytes: 60}]\n"
      "  cache: {gigabytes: 40, rule: keep}\n"
      "jobs:\n"
      "  - {ideal_seconds: 100, knee_cores_per_gpu: 1}\n"
      "  - {ideal_seconds: 100, knee_cores_per_gpu: 1, data_set: speech, epochs: 7, next_epoch_known: true}\n";
  const auto scenario = parse_scenario(text, "s.yaml");
  REQUIRE(scenario.ok());
  CHECK(scenario->cluster.data_sets[0].gigabytes == 150);
  CHECK(scenario->cluster.cache.gigabytes == 40);
  CHECK(scenario->cluster.cache.rule == CacheRule::kKeep);
  CHECK(scenario->jobs[0].data_set == -1);
  CHECK(scenario->jobs[1].data_set == 1);
  CHECK(scenario->jobs[1].epochs == 7);
  CHECK(scenario->jobs[1].next_epoch_known);
}

TEST_CASE("A file is read to its last byte, and what is no file is told by its path") {
  const TemporaryDirectory folder;
  std::string text(70001, 'x');
  text[0] = '\0';
  CHECK(*read_file(folder.file("long", text)) == text);
  CHECK(read_file(folder.file("empty", ""))->empty());
  const auto missing = read_file("/nowhere/s.yaml"), directory = read_file(folder.path.string());
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code() == ErrorCode::kNotFound);
  REQUIRE_FALSE(directory.ok());
  CHECK_THAT(directory.error().message(), Catch::Contains(folder.path.string()) && Catch::Contains("directory"));
}

TEST_CASE("Incidents are told by kind, and those on a node name it as the cluster does") {
  const auto scenario = parse_scenario(
      "name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1, count: 12}]\njob_list: x\nincidents:\n"
      "  - {kind: node-down, node: g-11, at_seconds: 7, for_seconds: 3}\n  - {kind: metrics-lost, at_seconds: 9}\n",
      "s.yaml");
  REQUIRE(scenario.ok());
  REQUIRE(scenario->incidents.size() == 2);
  CHECK(scenario->incidents[0].kind == IncidentKind::kNodeDown);
  CHECK(scenario->incidents[0].node == "g-11");
  CHECK(scenario->incidents[0].for_seconds == 3);
  CHECK(scenario->incidents[1].kind == IncidentKind::kMetricsLost);
  CHECK(scenario->incidents[1].at_seconds == 9);
}

TEST_CASE("A bad scenario is refused with its line") {
  struct Case {
    const char* name;
    const char* text;
    const char* want;
  };
  const Case cases[] = {
      {"not YAML", "name: [", "s.yaml:"},
      {"no mapping", "- a\n", "s.yaml:1: not a YAML mapping"},
      {"an unknown field", "name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1}]\n  physic: {}\njob_list: x\n",
       "s.yaml:4: cluster.physic: there is no such field"},
      {"a text for a number", "name: a\ncluster:\n  nodes:\n    - {name: g, gpus: 1, cores: many}\njob_list: x\n",
       "s.yaml:4: cluster.nodes[0].cores: not a number"},
      {"out of bounds",
       "name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1}]\n  physics:\n    interference: 2\njob_list: x\n",
       "s.yaml:5: cluster.physics.interference"},
      {"half a node", "name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1, count: 1.5}]\njob_list: x\n",
       "not a whole number"},
      {"no GPU", "name: a\ncluster:\n  nodes: [{name: g, cores: 1}]\njob_list: x\n", "no node has a GPU"},
      {"no jobs", "name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1}]\n", "no jobs"},
      {"no name", "cluster:\n  nodes: [{name: g, gpus: 1, cores: 1}]\njob_list: x\n", "\"name\" is missing"},
      {"unknown incident",
       "name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1}]\njob_list: x\nincidents:\n  - {kind: fire}\n",
       "s.yaml:6: incidents[0].kind"},
      {"empty goal", "name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1}]\njob_list: x\ngoals: [{figure: f}]\n",
       "neither at_least nor at_most"},
      {"neither true nor false",
       "name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1, spot: maybe}]\njob_list: x\n",
       "neither true nor false"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const auto scenario = parse_scenario(c.text, "s.yaml");
    REQUIRE_FALSE(scenario.ok());
    CHECK_THAT(scenario.error().message(), Catch::Contains(c.want));
  }
}

TEST_CASE("Generated jobs have the load, the mix and the knees of their recipe, the same for the same seed") {
  const auto scenario = parse_scenario(kScenario, "s.yaml");
  REQUIRE(scenario.ok());
  const auto jobs = workload_of(*scenario, {"", kProfiles}, 4);
  REQUIRE(jobs.ok());
  REQUIRE(jobs->size() == 3000);
  double work = 0, language = 0;
  for (const JobSpec& job : *jobs) {
    work += job.gpu_seconds();
    language += job.knee_cores_per_gpu < 1;
    CHECK(job.ideal_seconds >= 60 * std::pow(10, 1.5) / 10);
  }
  CHECK(work / jobs->back().arrival_seconds / 16 == Approx(0.5).epsilon(0.15));
  CHECK(language / 3000 == Approx(0.75).epsilon(0.05));
  const auto again = workload_of(*scenario, {"", kProfiles}, 4);
  const auto other = workload_of(*scenario, {"", kProfiles}, 5);
  CHECK((*again)[17].arrival_seconds == (*jobs)[17].arrival_seconds);
  CHECK((*other)[17].arrival_seconds != (*jobs)[17].arrival_seconds);
}

TEST_CASE("Jobs come from the scenario itself, a list, or the recipe; what is missing is said") {
  auto scenario = parse_scenario(
      "name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1}]\njob_list: missing-{seed}.txt\n", "s.yaml");
  REQUIRE(scenario.ok());
  CHECK_THAT(workload_of(*scenario, {}, 1).error().message(), Catch::Contains("--job-lists"));
  CHECK_THAT(workload_of(*scenario, {"/nowhere", {}}, 3).error().message(), Catch::Contains("/nowhere/missing-3.txt"));
  const TemporaryDirectory folder;
  const Sources lists{folder.path.string(), {}};
  folder.file("missing-3.txt", "5 1 10 1 0\n0 1 20 1 0\n");
  REQUIRE(workload_of(*scenario, lists, 3).ok());
  CHECK(workload_of(*scenario, lists, 3)->front().ideal_seconds == 20);  // by arrival
  folder.file("missing-4.txt", "0 1 10 1 0\n5 4 10 1 0\n");
  const auto large = workload_of(*scenario, lists, 4);
  REQUIRE_FALSE(large.ok());
  CHECK_THAT(large.error().message(), Catch::EndsWith("missing-4.txt:2: job-2 wants 4 GPUs, and the cluster has 1") &&
                                          Catch::Contains(lists.lists_folder));
  scenario->job_list = "missing-3.txt";  // the same for every seed
  CHECK(workload_of(*scenario, lists, 1)->size() == 2);
  scenario->recipe.models = {{"vgg", 1}};
  CHECK_THAT(workload_of(*scenario, {}, 1).error().message(), Catch::Contains("vgg"));
  scenario->jobs = {JobSpec{.ideal_seconds = 5}};
  CHECK(workload_of(*scenario, {}, 1)->size() == 1);
}

TEST_CASE("The catalogue's files are good") {
  const std::string folder = "scheduler/simulator/catalogue/";
  const auto profiles_text = read_file(folder + "profiles.yaml");
  REQUIRE(profiles_text.ok());
  const auto profiles = parse_profiles(*profiles_text, "profiles.yaml");
  REQUIRE(profiles.ok());
  for (const char* name :
       {"P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "C1", "C2", "D1", "T1", "demo-b", "demo-c"}) {
    INFO(name);
    const auto text = read_file(folder + name + ".yaml");
    REQUIRE(text.ok());
    const auto scenario = parse_scenario(*text, name);
    REQUIRE(scenario.ok());
    CHECK(scenario->name == name);
    CHECK(workload_of(*scenario, {"", *profiles}, 1).ok());
  }
  CHECK(parse_cluster(*read_file(folder + "cluster.yaml"), "cluster.yaml").ok());
  CHECK_FALSE(parse_profiles("a: {knee_cores_per_gpu: 3}\n", "p").ok());  // a figure without a source
}

}  // namespace
}  // namespace sluice::simulator
