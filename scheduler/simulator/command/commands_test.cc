#include "scheduler/simulator/command/commands.h"

#include <filesystem>
#include <sstream>

#include "scheduler/simulator/input/scenario.h"
#include "scheduler/simulator/report/experiment.h"
#include "src/base/testing/catch.h"
#include "src/base/testing/temporary_directory.h"

namespace sluice::simulator {
namespace {

using sluice::testing::TemporaryDirectory;

struct Ran {
  int code = 0;
  std::string output, errors;
};

Ran ran(std::vector<std::string> words) {
  words.insert(words.begin(), "sluice-sim");
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  std::ostringstream output, errors;
  Ran result;
  result.code = run_command(pointers, output, errors);
  result.output = output.str();
  result.errors = errors.str();
  return result;
}

constexpr const char* kCluster = "nodes:\n  - {name: gpu, count: 1, gpus: 8, cores: 24}\n";
constexpr const char* kScenario =
    "name: tiny\ncluster:\n  nodes: [{name: gpu, gpus: 8, cores: 24}]\njobs:\n"
    "  - {ideal_seconds: 100, knee_cores_per_gpu: 6, gpus: 2}\n  - {ideal_seconds: 50, knee_cores_per_gpu: 1}\n";

TEST_CASE("Wrong usage is told, with exit code 2") {
  CHECK(ran({}).code == 2);
  CHECK_THAT(ran({"dance"}).errors, Catch::Contains("sluice-sim run"));
  CHECK(ran({"run"}).code == 2);
  CHECK(ran({"run", "a", "b"}).code == 2);
  CHECK(ran({"run", "--fast"}).code == 2);
  CHECK(ran({"--help"}).code == 0);
}

TEST_CASE("Bad input is told by file and line, with exit code 2") {
  const TemporaryDirectory folder;
  const std::string scenario = folder.file("s.yaml", "name: a\ncluster:\n  nodes: 3\njob_list: x\n");
  const Ran bad = ran({"run", scenario});
  CHECK(bad.code == 2);
  CHECK_THAT(bad.errors, Catch::Contains(scenario + ":3: cluster.nodes: not a list"));
  const std::string list = folder.file("list.txt", "0 1 10 1 0\n0 one 10 1 0\n");
  const Ran trace = ran({"trace", list, "--cluster", folder.file("c.yaml", kCluster)});
  CHECK(trace.code == 2);
  CHECK_THAT(trace.errors, Catch::Contains(list + ":2: gpus \"one\" is not a number"));
  CHECK(ran({"run", (folder.path / "missing.yaml").string()}).code == 2);
  CHECK(ran({"trace", list}).code == 2);
  CHECK(ran({"trace", list, "--format", "xml", "--cluster", "c"}).code == 2);
  const std::string good = folder.file("g.yaml", kScenario);
  CHECK_THAT(ran({"run", good, "--policy", "static,magic"}).errors, Catch::Contains("magic"));
  CHECK(ran({"run", good, "--seeds", "0"}).code == 2);
}

TEST_CASE("A scenario gives one row per policy, and the files that were asked for") {
  const TemporaryDirectory folder;
  const std::string json = (folder.path / "out.json").string();
  const Ran result = ran({"run", folder.file("s.yaml", kScenario), "--policy", "static,burst", "--seeds", "2", "--json",
                          json, "--time-lines"});
  CHECK(result.errors.empty());
  CHECK(result.code == 0);
  CHECK_THAT(result.output, Catch::Contains("static") && Catch::Contains("burst") && Catch::Contains("Bound:"));
  CHECK(std::filesystem::file_size(json) > 1000);
  CHECK_THAT(*read_file(json), Catch::Contains("time_line"));
}

TEST_CASE("A trace is run on a cluster that is given beside it") {
  const TemporaryDirectory folder;
  const Ran result = ran({"trace", folder.file("list.txt", "0 1 100 6 0\n5 2 100 1 0\n"), "--cluster",
                          folder.file("c.yaml", kCluster), "--policy", "static,sluice", "--seeds", "1"});
  CHECK(result.code == 0);
  CHECK_THAT(result.output, Catch::Contains("2 jobs each"));
}

TEST_CASE("Limits are shown beside policies, and generated jobs are a job list that can be read again") {
  const TemporaryDirectory folder;
  const Ran oracle = ran({"oracle", folder.file("s.yaml", kScenario), "--policy", "static,sluice", "--seeds", "1"});
  CHECK(oracle.code == 0);
  CHECK_THAT(oracle.output, Catch::Contains("lower bound") && Catch::Contains("perfect"));
  const Ran jobs = ran({"generate", "scheduler/simulator/catalogue/P7.yaml", "--seed", "3"});
  REQUIRE(jobs.code == 0);
  const Ran again =
      ran({"trace", folder.file("list.txt", jobs.output), "--cluster", "scheduler/simulator/catalogue/cluster.yaml",
           "--policy", "static", "--most-jobs", "20", "--seeds", "1"});
  CHECK(again.code == 0);
}

TEST_CASE("The simulator is compared with a record, job by job") {
  const TemporaryDirectory folder;
  const std::string record = folder.file("record.json",
                                         R"({"phases": [{"key": "c", "jobs": {"job-1": {"compute_seconds": 100,
      "wait_seconds": 20, "most_workers_ready": 0}}}]})");
  const std::string scenario = folder.file("s.yaml", kScenario);
  const Ran good = ran({"calibrate", scenario, "--record", record});
  CHECK(good.errors.empty());
  CHECK(good.code == 0);
  CHECK_THAT(good.output, Catch::Contains("120.0 s") && Catch::Contains("error of the training time"));
  CHECK_THAT(ran({"calibrate", scenario, "--record", record, "--phase", "z"}).errors,
             Catch::Contains("no phase \"z\""));
  CHECK(ran({"calibrate", scenario, "--record", folder.file("r.json", "{}")}).code == 2);
  CHECK(ran({"calibrate", scenario, "--record",
             folder.file("r.json", R"({"phases": [{"key": "c", "jobs": {"x": {}}}]})")})
            .code == 2);
  CHECK(ran({"calibrate", scenario, "--record",
             folder.file("r.json", R"({"phases": [{"key": "c", "jobs": {"x": {"compute_seconds": 1, "wait_seconds": 1,
             "most_workers_ready": 0}}}]})")})
            .code == 2);
}

TEST_CASE("Every wrong flag is told by its name, before anything is run") {
  const TemporaryDirectory folder;
  const std::string good = folder.file("g.yaml", kScenario);
  struct Row {
    std::vector<std::string> words;
    const char* want;
  };
  const Row rows[] = {
      {{"run", good, "--seeds", "none"}, "seeds"},
      {{"run", good, "--seeds", "0"}, "--seeds: out of range"},
      {{"run", good, "--threads", "-1"}, "threads"},
      {{"run", good, "--policy", ","}, "--policy names none"},
      {{"run", good, "--policy", "static,,magic"}, "magic"},
      {{"run", good, "--catalogue", "/nowhere"}, "/nowhere/profiles.yaml"},
      {{"run", good, "--colour", "red"}, "colour"},
      {{"generate", good, "--seed", "-1"}, "seed"},
      {{"trace", good, "--cluster", good, "--format", "csv"}, "joblist, philly, alibaba-v2023 or sia"},
      {{"trace", good}, "--cluster CLUSTER.yaml is missing"},
      {{"trace"}, "expected one trace"},
      {{"oracle"}, "expected one SCENARIO.yaml"},
      {{"catalogue", good}, "takes no file"},
      {{"calibrate", good, "--record", "/nowhere.json"}, "/nowhere.json"},
      {{"catalogue", "--catalogue", "/nowhere"}, "/nowhere"},
  };
  for (const Row& row : rows) {
    const Ran result = ran(row.words);
    CAPTURE(row.words);
    CHECK(result.code == 2);
    CHECK_THAT(result.errors, Catch::Contains(row.want));
    CHECK(result.output.empty());
  }
}

TEST_CASE("A job that can never start is bad input; a file that cannot be written is a failure") {
  const TemporaryDirectory folder;
  const std::string large = folder.file("l.yaml",
                                        "name: l\ncluster:\n  nodes: [{name: gpu, gpus: 8, cores: 24}]\njobs:\n"
                                        "  - {name: huge, ideal_seconds: 100, knee_cores_per_gpu: 6, gpus: 9}\n");
  const Ran refused = ran({"run", large, "--policy", "static", "--seeds", "1"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.errors, Catch::Contains("huge wants 9 GPUs"));
  const Ran unwritten = ran({"run", folder.file("g.yaml", kScenario), "--policy", "static", "--seeds", "1", "--json",
                             (folder.path / "no" / "such" / "folder.json").string()});
  CHECK(unwritten.code != 0);
  CHECK_THAT(unwritten.errors, Catch::Contains("folder.json"));
}

TEST_CASE("A job list's job that is larger than the cluster is an error; of other traces it is left out and counted") {
  const TemporaryDirectory folder;
  const std::string cluster = folder.file("c.yaml", kCluster);
  const std::string list = folder.file("list.txt", "# two\n0 1 100 6 0\n5 9 100 1 0\n");
  for (const char* command : {"trace", "oracle"}) {
    const Ran refused = ran({command, list, "--cluster", cluster, "--policy", "static", "--seeds", "1"});
    CHECK(refused.code == 2);
    CHECK(refused.errors == list + ":3: job-2 wants 9 GPUs, and the cluster has 8\n");
  }
  const std::string head = "time,application,num_replicas,duration\n";
  const auto sia = [&](const std::string& lines) {
    return ran({"trace", folder.file("sia.csv", head + lines), "--format", "sia", "--cluster", cluster, "--policy",
                "static", "--seeds", "1"});
  };
  const Ran some = sia("0,lm,1,100\n5,lm,9,100\n6,lm,99,100\n");
  CHECK(some.code == 0);
  CHECK_THAT(some.output, Catch::Contains("2 jobs larger than the cluster are left out"));
  CHECK_THAT(some.output, Catch::Contains("1 jobs each"));
  const Ran none = sia("0,lm,9,100\n");
  CHECK(none.code == 2);
  CHECK_THAT(none.errors, Catch::Contains("sia.csv: every job wants more than the 8 GPUs of the cluster"));
}

TEST_CASE("A job list is run to its last job; of other traces the first thousand, and that is said") {
  const TemporaryDirectory folder;
  const std::string cluster = folder.file("c.yaml", kCluster);
  std::string list, sia = "time,application,num_replicas,duration\n";
  for (int i = 0; i < 1200; ++i) {
    list += std::to_string(i) + " 1 5 0.5 0\n";
    sia += std::to_string(i) + ",lm,1,5\n";
  }
  const std::string text = folder.file("list.txt", list), csv = folder.file("sia.csv", sia);
  struct Row {
    const char* situation;
    std::vector<std::string> words;
    const char* want;
    const char* want_said;
  };
  const Row rows[] = {
      {"a list", {"trace", text}, "1200 jobs each", "format joblist\n"},
      {"the first of a list", {"trace", text, "--most-jobs", "7"}, "7 jobs each", "; the first 7 of 1200 jobs"},
      {"more than there are", {"trace", text, "--most-jobs", "5000"}, "1200 jobs each", "format joblist\n"},
      {"a trace", {"trace", csv, "--format", "sia"}, "1000 jobs each", "; the first 1000 of 1200 jobs"},
      {"all of a trace", {"trace", csv, "--format", "sia", "--most-jobs", "1200"}, "1200 jobs each", "format sia\n"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    std::vector<std::string> words = row.words;
    words.insert(words.end(), {"--cluster", cluster, "--policy", "static", "--seeds", "1"});
    const Ran result = ran(words);
    CHECK(result.code == 0);
    CHECK_THAT(result.output, Catch::Contains(row.want) && Catch::Contains(row.want_said));
  }
}

TEST_CASE("Every legal job list gives every policy and limit a row of numbers") {
  const TemporaryDirectory folder;
  const std::string cluster = folder.file(
      "c.yaml",
      "nodes:\n  - {name: gpu, count: 2, gpus: 8, cores: 24, network_gbps: 10}\n  - {name: cpu, cores: 16}\n");
  std::string at_once;
  for (int i = 0; i < 30; ++i) at_once += "0 " + std::to_string(1 << (i % 4)) + " 60 " + std::to_string(i % 9) + " 1\n";
  struct Row {
    const char* situation;
    std::string list;
  };
  const Row rows[] = {
      {"one job", "0 1 100 6 1\n"},
      {"one job that arrives late", "5000 1 100 6 1\n"},
      {"a job of a millisecond", "0 1 0.001 6 1\n"},
      {"a gang larger than a node", "0 12 100 6 1\n3 16 50 1 1\n"},
      {"no knee", "0 1 100 0 0\n1 8 100 0 0\n"},
      {"a knee of 50 cores per GPU", "0 8 100 50 1\n0 1 100 50 1\n"},
      {"all at once, more than fit", at_once},
      {"no network", "0 4 100 12 0\n2 4 100 12 0\n"},
      {"more network than there is", "0 4 100 12 1000\n2 4 100 12 1e5\n"},
      {"Windows, comments, tabs and no last newline", "# list\r\n0\t1\t30.5\t6\t1 # one\r\n\r\n1 2 40.25 3 1 7 9"},
      {"two that arrive within a wink, before either starts", "1 1 50 6 1\n1.000001 1 50 6 1\n"},
      {"years between them", "0 1 100 6 1\n9e7 1 100 6 1\n"},
  };
  const std::vector<std::string> policies = all_policies();
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const std::string list = folder.file("list.txt", row.list);
    const std::string json = (folder.path / "out.json").string();
    const Ran result =
        ran({"trace", list, "--cluster", cluster, "--policy", "all", "--seeds", "2", "--json", json, "--time-lines"});
    CHECK(result.errors.empty());
    CHECK(result.code == 0);
    for (const std::string& policy : policies) CHECK_THAT(result.output, Catch::Contains("\n" + policy + " "));
    const Ran oracle = ran({"oracle", list, "--cluster", cluster, "--policy", "static,sluice", "--seeds", "1"});
    CHECK(oracle.errors.empty());
    CHECK(oracle.code == 0);
    CHECK_THAT(oracle.output, Catch::Contains("lower bound"));
    for (const std::string& text : {result.output, oracle.output, *read_file(json)})
      for (const char* nonsense : {" nan", "[nan", "-nan", " inf ", "[inf", "-inf", "null", " - ", "[-, -]"})
        CHECK_THAT(text, !Catch::Contains(nonsense));
  }
}

TEST_CASE("What cannot be read in a scenario stops every command that reads one, with file, line and exit code 2") {
  const TemporaryDirectory folder;
  const std::string head = "name: a\ncluster:\n  nodes: [{name: g, gpus: 2, cores: 4}]\n";
  struct Row {
    const char* situation;
    std::string text;
    const char* want;
  };
  const Row rows[] = {
      {"no YAML", head + "jobs: [\n", ":5: "},
      {"an unknown field", head + "speed: 3\njob_list: x\n", ":4: speed"},
      {"a unit", head + "jobs:\n  - {ideal_seconds: 5min, knee_cores_per_gpu: 1}\n", ":5: jobs[0].ideal_seconds"},
      {"less than nothing", head + "jobs:\n  - {ideal_seconds: 5, knee_cores_per_gpu: -1}\n", ":5: jobs[0].knee"},
      {"not a number", head + "jobs:\n  - {ideal_seconds: .nan, knee_cores_per_gpu: 1}\n", ":5: jobs[0].ideal_seconds"},
      {"no time", head + "jobs:\n  - {ideal_seconds: 0, knee_cores_per_gpu: 1}\n", ":5: jobs[0].ideal_seconds"},
      {"more GPUs than there are", head + "jobs:\n  - {ideal_seconds: 5, knee_cores_per_gpu: 1, gpus: 3}\n",
       ":5: jobs[0].gpus"},
      {"an incident on no node", head + "job_list: x\nincidents:\n  - {kind: drain, node: h-0}\n",
       ":6: incidents[0].node"},
  };
  for (const Row& row : rows) {
    const std::string path = folder.file("s.yaml", row.text);
    for (const char* command : {"run", "oracle", "generate", "calibrate"}) {
      CAPTURE(row.situation, command);
      const Ran result = ran({command, path});
      CHECK(result.code == 2);
      CHECK(result.output.empty());
      CHECK_THAT(result.errors, Catch::StartsWith(path + row.want));
    }
  }
}

TEST_CASE("The same run prints the same figures, byte by byte") {
  const TemporaryDirectory folder;
  const std::string scenario = folder.file("s.yaml", kScenario);
  const auto json = [&](const std::string& threads) {
    const std::string path = (folder.path / "out.json").string();
    REQUIRE(ran({"run", scenario, "--policy", "all", "--seeds", "2", "--threads", threads, "--json", path}).code == 0);
    return *read_file(path);
  };
  const std::string once = json("1");
  CHECK(once.size() > 1000);
  CHECK(json("1") == once);
  CHECK(json("3") == once);
}

TEST_CASE("The catalogue's exit code tells whether every goal was reached, and its JSON holds the verdicts") {
  const TemporaryDirectory folder;
  folder.file("profiles.yaml", "lm: {source: nobody, knee_cores_per_gpu: 0.5}\n");
  const std::string json = (folder.path / "out.json").string();
  const auto judged = [&](const char* goal) {
    folder.file("A1.yaml", std::string(kScenario) + "baselines: false\ngoals:\n  - {" + goal + "}\n");
    return ran({"catalogue", "--catalogue", folder.path.string(), "--seeds", "1", "--json", json});
  };
  const Ran good = judged("figure: jct_gain, at_least: 1");
  CHECK(good.code == 0);
  CHECK_THAT(good.output, Catch::Contains("1 of 1 goals reached"));
  CHECK_THAT(*read_file(json), Catch::Contains("\"verdict\":\"ok\""));
  const Ran missed = judged("figure: jct_gain, at_least: 100");
  CHECK(missed.code == 1);
  CHECK_THAT(missed.output, Catch::Contains("falls short"));
  CHECK_THAT(*read_file(json), Catch::Contains("\"verdict\":\"falls short\""));
  const Ran unknown = judged("figure: beauty, at_least: 1");
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.errors, Catch::Contains("beauty"));
}

}  // namespace
}  // namespace sluice::simulator
