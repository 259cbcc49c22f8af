// A mistyped field of an input gives an error with the file, the line and the field.
#include <string>

#include "scheduler/simulator/input/scenario.h"
#include "scheduler/simulator/report/calibration.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

// A scenario with one line of physics, which is line 4.
std::string with_physics(const std::string& line) {
  return "name: a\ncluster:\n  physics:\n    " + line + "\n  nodes: [{name: g, gpus: 1, cores: 1}]\njob_list: x\n";
}

std::string problem_of(const std::string& text) {
  const auto scenario = parse_scenario(text, "s.yaml");
  return scenario.ok() ? "" : scenario.error().message();
}

TEST_CASE("Every number of the physics has bounds, and is refused beyond them with its line") {
  struct Row {
    const char* field;
    const char* too_small;
    const char* too_large;
  };
  const Row rows[] = {
      {"softmin_exponent", "0.5", "1001"},
      {"remote_efficiency", "0", "11"},
      {"local_exponent", "0", "1.1"},
      {"local_flatter_above_cores", "-1", "1e10"},
      {"local_flatter_exponent", "-0.1", "1.1"},
      {"interference", "-0.1", "0.95"},
      {"local_appetite", "0", "101"},
      {"min_local_millicores", "0", "1e7"},
      {"worker_startup_seconds", "-1", "1e10"},
      {"worker_limit_factor", "0.9", "1e10"},
      {"worker_warmup_seconds", "-1", "1e10"},
      {"worker_warmup_speed", "-0.1", "1.1"},
      {"worker_drain_seconds", "-1", "1e10"},
      {"trainer_startup_seconds", "-1", "1e10"},
      {"worker_millicores", "0", "1e7"},
      {"worker_millicores", "0.5", "1500.5"},
      {"max_workers_per_job", "-1", "2000000"},
      {"decision_period_seconds", "0", "1e10"},
      {"admission_period_seconds", "-1", "1e10"},
      {"metrics_age_seconds", "-1", "1e10"},
      {"metrics_window_seconds", "0", "1e10"},
      {"metrics_window_most_seconds", "0", "1e10"},
      {"metrics_noise", "-0.1", "6"},
      {"batches_per_second_per_gpu", "0", "1e10"},
      {"storage_gbps", "-1", "1e10"},
      {"cached_after_first_epoch", "-0.1", "1.1"},
      {"epoch_seconds", "0.01", "1e10"},  // a run of as many events as there are epochs would never end
      {"cost_change", "-0.1", "6"},
      {"cost_change_seconds", "0", "1e10"},
      {"node_failure_hours", "-1", "1e10"},
      {"spot_return_seconds", "0", "1e10"},
      {"checkpoint_seconds", "0", "1e10"},
      {"gpu_price_per_hour", "-1", "1e10"},
  };
  for (const Row& row : rows) {
    const std::string field = row.field;
    CAPTURE(field);
    for (const char* value : {row.too_small, row.too_large, "soon", "nan", "[1]", ""})
      CHECK_THAT(problem_of(with_physics(field + ": " + value)),
                 Catch::StartsWith("s.yaml:4: cluster.physics." + field + ":"));
    CHECK_THAT(problem_of(with_physics(field + "s: 1")),
               Catch::Contains("s.yaml:4: cluster.physics." + field + "s: there is no such field"));
  }
}

TEST_CASE("What a scenario may not say, by place") {
  const std::string head = "name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1}]\n";
  struct Row {
    const char* situation;
    std::string text;
    const char* want;
  };
  const Row rows[] = {
      {"a list where a mapping belongs", "name: a\ncluster: [1]\njob_list: x\n", "s.yaml:2: cluster: not a mapping"},
      {"a node that is a word", "name: a\ncluster:\n  nodes:\n    - gpu\njob_list: x\n",
       "s.yaml:4: cluster.nodes[0]: not a mapping"},
      {"the second of two nodes",
       "name: a\ncluster:\n  nodes:\n    - {name: g, gpus: 1, cores: 1}\n    - {name: h}\njob_list: x\n",
       "s.yaml:5: cluster.nodes[1]: \"cores\" is missing"},
      {"a job without a knee", head + "jobs:\n  - {ideal_seconds: 5}\n",
       "s.yaml:5: jobs[0]: \"knee_cores_per_gpu\" is missing"},
      {"a job of half a GPU", head + "jobs:\n  - {ideal_seconds: 5, knee_cores_per_gpu: 1, gpus: 0.5}\n",
       "s.yaml:5: jobs[0].gpus"},
      {"a job that takes no time", head + "jobs:\n  - {ideal_seconds: 0, knee_cores_per_gpu: 1}\n",
       "s.yaml:5: jobs[0].ideal_seconds"},
      {"a weight of nothing", head + "jobs:\n  - {ideal_seconds: 5, knee_cores_per_gpu: 1, weight: 0}\n",
       "s.yaml:5: jobs[0].weight"},
      {"GPUs that are no number", head + "generate:\n  gpus: {many: 1}\n  models: {lm: 1}\n",
       "s.yaml:5: generate.gpus: \"many\" is no number of GPUs"},
      {"a recipe without models", head + "generate: {jobs: 5}\n", "s.yaml:4: generate: \"models\" is missing"},
      {"smoother than Poisson", head + "generate:\n  models: {lm: 1}\n  burstiness: 0.5\n",
       "s.yaml:6: generate.burstiness"},
      {"a list of no jobs", head + "jobs: []\n", "s.yaml:4: jobs: no job"},
      {"a job larger than the cluster",
       head + "jobs:\n  - {name: big, ideal_seconds: 5, knee_cores_per_gpu: 1, gpus: 2}\n",
       "s.yaml:5: jobs[0].gpus: big wants 2 GPUs, and the cluster has 1"},
      {"learnt workers of a job that nothing is known of",
       head + "jobs:\n  - {ideal_seconds: 5, knee_cores_per_gpu: 1, learnt_workers: 2}\n",
       "s.yaml:5: jobs[0]: \"learnt_knee_cores_per_gpu\" is missing"},
      {"a start in the past", head + "jobs:\n  - {ideal_seconds: 5, knee_cores_per_gpu: 1, startup_seconds: -1}\n",
       "s.yaml:5: jobs[0].startup_seconds"},
      {"two jobs of one name", head + "jobs:\n  - &a {name: x, ideal_seconds: 5, knee_cores_per_gpu: 1}\n  - *a\n",
       "jobs[1].name: there are two jobs \"x\""},
      {"a name that another job has by default",
       head + "jobs:\n  - {name: job-2, ideal_seconds: 5, knee_cores_per_gpu: 1}\n"
              "  - {ideal_seconds: 5, knee_cores_per_gpu: 1}\n",
       "s.yaml:6: jobs[1].name: there are two jobs \"job-2\""},
      {"a data set that the cluster does not have",
       head + "jobs:\n  - {ideal_seconds: 50, knee_cores_per_gpu: 1, data_set: photos, epochs: 2}\n",
       "s.yaml:5: jobs[0].data_set: the cluster has no data set \"photos\""},
      {"epochs of nothing", head + "jobs:\n  - {ideal_seconds: 50, knee_cores_per_gpu: 1, epochs: 2}\n",
       "s.yaml:5: jobs[0]: \"data_set\" is missing"},
      {"a data set without a number of epochs",
       head + "  data_sets: [{name: a, gigabytes: 1}]\njobs:\n  - {ideal_seconds: 50, knee_cores_per_gpu: 1, data_set: "
              "a}\n",
       "s.yaml:6: jobs[0]: \"epochs\" is missing"},
      {"epochs of less than a second",
       head + "  data_sets: [{name: a, gigabytes: 1}]\njobs:\n"
              "  - {ideal_seconds: 50, knee_cores_per_gpu: 1, data_set: a, epochs: 51}\n",
       "s.yaml:6: jobs[0].epochs: an epoch of less than a second"},
      {"two data sets of one name",
       head + "  data_sets: [{name: a, gigabytes: 1}, {name: a, gigabytes: 2}]\njob_list: x\n",
       "s.yaml:4: cluster.data_sets[1].name: there are two data sets \"a\""},
      {"a data set of nothing", head + "  data_sets: [{name: a, gigabytes: 0}]\njob_list: x\n",
       "s.yaml:4: cluster.data_sets[0].gigabytes"},
      {"a cache by another rule", head + "  cache: {gigabytes: 1, rule: mru}\njob_list: x\n",
       "s.yaml:4: cluster.cache.rule: there is no cache \"mru\""},
      {"a cache of no size", head + "  cache: {rule: lru}\njob_list: x\n",
       "s.yaml:4: cluster.cache: \"gigabytes\" is missing"},
      {"a recipe of no GPUs", head + "generate:\n  models: {lm: 1}\n  gpus: {}\n",
       "s.yaml:6: generate.gpus: no weight"},
      {"GPUs that are never drawn", head + "generate:\n  models: {lm: 1}\n  gpus: {1: 0}\n",
       "s.yaml:6: generate.gpus: no weight above 0"},
      {"models that are never drawn", head + "generate:\n  gpus: {1: 1}\n  models: {lm: 0, cv: 0}\n",
       "s.yaml:6: generate.models: no weight above 0"},
      {"a recipe whose jobs are larger than the cluster", head + "generate:\n  models: {lm: 1}\n  gpus: {1: 1, 2: 1}\n",
       "s.yaml:6: generate.gpus: a job wants 2 GPUs, and the cluster has 1"},
      {"an incident on a node that is not there",
       head + "job_list: x\nincidents:\n  - {kind: drain, at_seconds: 5, node: g-1}\n",
       "s.yaml:6: incidents[0].node: the cluster has no node \"g-1\""},
      {"a node by the name of its group", head + "job_list: x\nincidents:\n  - {kind: node-down, node: g}\n",
       "s.yaml:6: incidents[0].node: the cluster has no node \"g\""},
      {"a drain of nowhere", head + "job_list: x\nincidents:\n  - {kind: drain}\n",
       "s.yaml:6: incidents[0].node: the cluster has no node \"\""},
      {"metrics lost of one node", head + "job_list: x\nincidents:\n  - {kind: metrics-lost, node: g-0}\n",
       "s.yaml:6: incidents[0].node: metrics are lost of all nodes together"},
      {"a second document", head + "job_list: x\n---\njob_list: y\n", "s.yaml:6: a second document"},
      {"an incident without a kind", head + "job_list: x\nincidents:\n  - {node: g-0}\n",
       "s.yaml:6: incidents[0]: \"kind\" is missing"},
      {"a goal that is a word", head + "job_list: x\ngoals:\n  - {figure: jct_gain, at_least: high}\n",
       "s.yaml:6: goals[0].at_least: not a number"},
      {"a reference that is a word", head + "job_list: x\nreference: {jct_gain: good}\n",
       "s.yaml:5: reference.jct_gain: not a number"},
      {"baselines by a word", head + "job_list: x\nbaselines: yes please\n",
       "s.yaml:5: baselines: neither true nor false"},
      {"a name that is a list", "name: [a]\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1}]\njob_list: x\n",
       "s.yaml:1: name: not a text"},
      {"a field twice as wrong as the next: the first is told", head + "job_list: x\nspeed: 1\npace: 2\n",
       "s.yaml:5: speed"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    CHECK_THAT(problem_of(row.text), Catch::Contains(row.want));
  }
}

TEST_CASE("Clusters and profiles are read by the same rules") {
  CHECK_THAT(parse_cluster("nodes:\n  - {name: g, gpus: -1, cores: 4}\n", "c.yaml").error().message(),
             Catch::Contains("c.yaml:2: nodes[0].gpus"));
  CHECK_THAT(parse_cluster("physics: {}\n", "c.yaml").error().message(),
             Catch::Contains("c.yaml:1: \"nodes\" is missing"));
  CHECK_THAT(parse_profiles("lm:\n  source: a paper\n  knee_cores_per_gpu: 0\n", "p.yaml").error().message(),
             Catch::Contains("p.yaml:3: lm.knee_cores_per_gpu"));
  CHECK_THAT(
      parse_profiles("lm: {source: a, knee_cores_per_gpu: 1}\nlm: {source: b, knee_cores_per_gpu: 2}\n", "p.yaml")
          .error()
          .message(),
      Catch::Contains("p.yaml:2: lm: given twice"));
  CHECK_THAT(parse_profiles("lm: 3\n", "p.yaml").error().message(), Catch::Contains("p.yaml:1: lm: not a mapping"));
}

TEST_CASE("Every column of every trace format is checked, and told by line and name") {
  struct Row {
    const char* situation;
    TraceFormat format;
    const char* text;
    const char* want;
  };
  const Row rows[] = {
      {"arrival before the beginning", TraceFormat::kJobList, "0 1 10 1 0\n-5 1 10 1 0\n", "t:2: arrival_s"},
      {"no GPUs", TraceFormat::kJobList, "0 0 10 1 0\n", "t:1: gpus"},
      {"no running time", TraceFormat::kJobList, "0 1 0 1 0\n", "t:1: ideal_s"},
      {"a negative network rate", TraceFormat::kJobList, "0 1 10 1 -1\n", "t:1: gbps"},
      {"half a GPU", TraceFormat::kJobList, "0 0.5 10 1 0\n", "t:1: gpus 0.5 is out of range"},
      {"less than no GPUs", TraceFormat::kJobList, "0 -2 10 1 0\n", "t:1: gpus -2 is out of range"},
      {"more GPUs than any cluster has", TraceFormat::kJobList, "0 1e30 10 1 0\n", "t:1: gpus 1e30 is out of range"},
      {"less than no running time", TraceFormat::kJobList, "0 1 -10 1 0\n", "t:1: ideal_s -10 is out of range"},
      {"longer than a run may be", TraceFormat::kJobList, "0 1 1e9 1 0\n", "t:1: ideal_s 1e9 is out of range"},
      {"arrival after the end of a run", TraceFormat::kJobList, "1e9 1 10 1 0\n", "t:1: arrival_s 1e9"},
      {"less than no knee", TraceFormat::kJobList, "0 1 10 -1 0\n", "t:1: kappa -1 is out of range"},
      {"NaN GPUs", TraceFormat::kJobList, "0 nan 10 1 0\n", "t:1: gpus \"nan\" is not a number"},
      {"NaN running time", TraceFormat::kJobList, "0 1 NaN 1 0\n", "t:1: ideal_s \"NaN\" is not a number"},
      {"infinite running time", TraceFormat::kJobList, "0 1 inf 1 0\n", "t:1: ideal_s \"inf\" is not a number"},
      {"NaN knee", TraceFormat::kJobList, "0 1 10 -nan 0\n", "t:1: kappa \"-nan\" is not a number"},
      {"NaN network", TraceFormat::kJobList, "0 1 10 1 nan\n", "t:1: gbps_per_gpu \"nan\" is not a number"},
      {"a start that is none", TraceFormat::kJobList, "0 1 10 1 0 soon 5\n", "t:1: start_s \"soon\" is not a number"},
      {"a finish that is NaN", TraceFormat::kJobList, "0 1 10 1 0 0 nan\n", "t:1: finish_s \"nan\" is not a number"},
      {"a start without a finish", TraceFormat::kJobList, "0 1 10 1 0 5\n", "but the line has 6 fields"},
      {"a column too many", TraceFormat::kJobList, "0 1 10 1 0 5 6 7\n", "but the line has 8 fields"},
      {"a column too few", TraceFormat::kJobList, "0 1 10 1\n", "but the line has 4 fields"},
      {"a comma for a point", TraceFormat::kJobList, "0,5 1 10 1 0\n", "t:1: arrival_s \"0,5\" is not a number"},
      {"commas between fields", TraceFormat::kJobList, "0,1,10,1,0\n", "but the line has 1 fields"},
      {"a heading", TraceFormat::kJobList, "arrival_s gpus ideal_s kappa gbps\n0 1 10 1 0\n", "t:1: arrival_s"},
      {"lines of an old Macintosh", TraceFormat::kJobList, "0 1 10 1 0\r5 1 10 1 0\r", "t:1: a job is"},
      {"the last of many lines", TraceFormat::kJobList, "# a\r\n\r\n0 1 10 1 0\r\n0 1 x 1 0", "t:4: ideal_s"},
      {"an empty file", TraceFormat::kJobList, "", "t:1: no jobs"},
      {"nothing but an editor's mark", TraceFormat::kJobList, "\xEF\xBB\xBF", "t:1: no jobs"},
      {"a number with a tail", TraceFormat::kJobList, "0 1 10s 1 0\n", "t:1: ideal_s \"10s\" is not a number"},
      {"not a number at all", TraceFormat::kJobList, "nan 1 10 1 0\n", "t:1: arrival_s"},
      {"Philly: too few fields", TraceFormat::kPhilly, "LM (x)\tc\ts\n", "t:1:"},
      {"Philly: steps that are a word", TraceFormat::kPhilly, "LM (x)\tc\ts\t1\tmany\t0\t1\n", "t:1:"},
      {"Alibaba: an empty file", TraceFormat::kAlibaba2023, "", "t:1: the file is empty"},
      {"Alibaba: a bad time", TraceFormat::kAlibaba2023,
       "name,num_gpu,creation_time,deletion_time,scheduled_time\na,1,0,9,1\nb,1,x,9,1\n", "t:3: creation_time"},
      {"Sia: an empty file", TraceFormat::kSia, "", "t:1: the file is empty"},
      {"Sia: no application", TraceFormat::kSia, "time,application,num_replicas\n1\n", "t:2:"},
      {"Sia: a duration of nothing", TraceFormat::kSia, "time,application,num_replicas,duration\n1,lm,1,0\n",
       "t:2: duration"},
  };
  const Profiles profiles = {{"lm", {0.5, 0.02, 40}}};
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const auto jobs = parse_trace(row.format, row.text, "t", {}, profiles);
    REQUIRE_FALSE(jobs.ok());
    CHECK_THAT(jobs.error().message(), Catch::Contains(row.want));
  }
}

TEST_CASE("What no job can be is told by the trace it stands in") {
  struct Row {
    const char* situation;
    TraceFormat format;
    const char* text;
    double time_scale;
    const char* want;
  };
  const char* kPods = "name,num_gpu,creation_time,deletion_time,scheduled_time\n";
  const std::string half = std::string(kPods) + "a,1,0,9,1\nb,1.5,0,9,1\n",
                    twice = std::string(kPods) + "a,1,0,9,1\na,1,0,9,1\n",
                    none = std::string(kPods) + "a,0,0,9,1\nb,1,0,9,\nc,1,0,5,5\nd,1,0,5\n";
  const Row rows[] = {
      {"half a GPU more than one", TraceFormat::kAlibaba2023, half.c_str(), 1, "t:3: num_gpu must be a whole number"},
      {"one pod twice", TraceFormat::kAlibaba2023, twice.c_str(), 1, "t:3: there are two pods \"a\""},
      {"pods that never trained", TraceFormat::kAlibaba2023, none.c_str(), 1, "t:1: no jobs"},
      {"a time divisor that leaves nothing", TraceFormat::kJobList, "0 1 10 1 0\n", 1e6,
       "t:1: job-1 would run for less than a millisecond"},
      {"steps that take for ever", TraceFormat::kPhilly, "LM (x)\tc\ts\t1\t1e12\t0\t1\n", 1,
       "t:1: philly-1 would run for more than three years"},
      {"steps that take no time", TraceFormat::kPhilly, "LM (x)\tc\ts\t1\t1\t0\t1\n", 1e3,
       "t:1: philly-1 would run for less than a millisecond"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    TraceAssumptions assumptions;
    assumptions.time_scale = row.time_scale;
    const auto jobs = parse_trace(row.format, row.text, "t", assumptions, {{"lm", {0.5, 0.02, 40}}});
    REQUIRE_FALSE(jobs.ok());
    CHECK(jobs.error().message() == row.want);
    CHECK(jobs.error().code() == ErrorCode::kInvalidArgument);
  }
  CHECK_THAT(parse_trace(TraceFormat::kAlibaba2023, twice, "t", {}, {}).error().message(),
             Catch::Contains("no profiles"));
}

TEST_CASE("A record that is not one is named") {
  for (const char* text : {"", "[]", "{\"phases\": 3}", "{\"phases\": [{\"key\": \"c\"}]}",
                           "{\"phases\": [{\"key\": \"c\", \"jobs\": {\"a\": {\"compute_seconds\": \"long\"}}}]}"}) {
    CAPTURE(text);
    const auto record = parse_record(text, "demo.json", "c");
    REQUIRE_FALSE(record.ok());
    CHECK_THAT(record.error().message(), Catch::StartsWith("demo.json"));
  }
}

TEST_CASE("GPUs are whole in every format, and in a recipe") {
  const Profiles profiles = {{"lm", {0.5, 0.02, 40}}};
  struct Row {
    TraceFormat format;
    const char* text;
    const char* want;
  };
  const Row rows[] = {
      {TraceFormat::kJobList, "0 1.5 10 1 0\n", "t:1: gpus must be a whole number"},
      {TraceFormat::kPhilly, "LM (x)\tc\ts\t1\t10\t0\t1.5\n", "t:1: scale factor must be a whole number"},
      {TraceFormat::kSia, "time,application,num_replicas\n1,lm,1.5\n", "t:2: num_replicas must be a whole number"},
  };
  for (const Row& row : rows) CHECK(parse_trace(row.format, row.text, "t", {}, profiles).error().message() == row.want);
  for (const char* gpus : {"2x", "0", "-1", "1.5", "many", "\"\""}) {
    CAPTURE(gpus);
    CHECK_THAT(
        problem_of(std::string("name: a\ncluster:\n  nodes: [{name: g, gpus: 1, cores: 1}]\ngenerate:\n  gpus: {") +
                   gpus + ": 1}\n  models: {lm: 1}\n"),
        Catch::Contains("is no number of GPUs"));
  }
}

TEST_CASE("Two groups of nodes with one name would be one node twice") {
  CHECK_THAT(problem_of("name: a\ncluster:\n  nodes:\n    - {name: g, gpus: 1, cores: 1}\n    - {name: g, cores: 9}\n"
                        "job_list: x\n"),
             Catch::StartsWith("s.yaml:5: cluster.nodes[1].name: there are two groups of nodes \"g\""));
}

}  // namespace
}  // namespace sluice::simulator
