#include "scheduler/simulator/commands.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

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

// A folder of its own for a test's files.
struct Folder {
  std::filesystem::path path;
  explicit Folder(const std::string& name) : path(std::filesystem::temp_directory_path() / ("sluice-sim-" + name)) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
};

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
  const Folder folder("bad");
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
  const Folder folder("run");
  const std::string json = (folder.path / "out.json").string(), html = (folder.path / "out.html").string();
  const Ran result = ran({"run", folder.file("s.yaml", kScenario), "--policy", "static,burst", "--seeds", "2", "--json",
                          json, "--report", html});
  CHECK(result.errors.empty());
  CHECK(result.code == 0);
  CHECK_THAT(result.output, Catch::Contains("static") && Catch::Contains("burst") && Catch::Contains("Bound:"));
  CHECK(std::filesystem::file_size(json) > 1000);
  CHECK(std::filesystem::file_size(html) > 5000);
}

TEST_CASE("A trace is run on a cluster that is given beside it") {
  const Folder folder("trace");
  const Ran result = ran({"trace", folder.file("list.txt", "0 1 100 6 0\n5 2 100 1 0\n"), "--cluster",
                          folder.file("c.yaml", kCluster), "--policy", "static,sluice", "--seeds", "1"});
  CHECK(result.code == 0);
  CHECK_THAT(result.output, Catch::Contains("2 jobs each"));
}

TEST_CASE("Limits are shown beside policies, and generated jobs are a job list that can be read again") {
  const Folder folder("oracle");
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
  const Folder folder("calibrate");
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

}  // namespace
}  // namespace sluice::simulator
