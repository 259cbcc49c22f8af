#include "scheduler/simulator/input/trace.h"

#include <algorithm>

#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

Profiles profiles() { return {{"resnet-18", {7.2, 2.3, 20}}, {"lm", {0.5, 0.02, 40}}, {"m5", {7.5, 0.6, 0}}}; }

Result<Workload> parse(TraceFormat format, std::string_view text, TraceAssumptions assumptions = {}) {
  return parse_trace(format, text, "trace", assumptions, profiles());
}

TEST_CASE("A job list says everything about its jobs") {
  const auto jobs = parse(TraceFormat::kJobList, "# comment\n0.5 2 100 4.2 1.3 10 110\n\n7 1 20.5 0.5 0.02\n");
  REQUIRE(jobs.ok());
  REQUIRE(jobs->size() == 2);
  CHECK((*jobs)[0].arrival_seconds == 0.5);
  CHECK((*jobs)[0].gpus == 2);
  CHECK((*jobs)[0].ideal_seconds == 100);
  CHECK((*jobs)[0].knee_cores_per_gpu == 4.2);
  CHECK((*jobs)[0].network_gbps_per_gpu == 1.3);
  CHECK((*jobs)[0].line == 2);
  CHECK((*jobs)[1].line == 4);
  CHECK((*jobs)[0].gpu_seconds() == 200);
}

TEST_CASE("Philly's jobs get their running time from steps, and their knee from the model's profile") {
  const auto jobs = parse(TraceFormat::kPhilly,
                          "ResNet-18 (batch size 32)\tcmd\t-step\t1\t2000\t50.0\t4\n"
                          "LM (batch size 5)\tcmd\t--steps\t0\t400\t10.0\t1\n");
  REQUIRE(jobs.ok());
  CHECK((*jobs)[0].knee_cores_per_gpu == 0.5);  // by arrival, the first at 0
  CHECK((*jobs)[0].arrival_seconds == 0);
  CHECK((*jobs)[0].ideal_seconds == 10);
  CHECK((*jobs)[1].arrival_seconds == 40);
  CHECK((*jobs)[1].ideal_seconds == 100);
  CHECK((*jobs)[1].gpus == 4);
}

TEST_CASE("Alibaba's pods count when they asked for GPUs and ran") {
  const auto jobs = parse(TraceFormat::kAlibaba2023,
                          "name,cpu_milli,num_gpu,creation_time,deletion_time,scheduled_time\n"
                          "a,1,1,100,300,150\nno-gpu,1,0,100,300,150\nnever,1,1,100,300,\nb,1,8,200,260,200\n");
  REQUIRE(jobs.ok());
  REQUIRE(jobs->size() == 2);
  CHECK((*jobs)[0].name == "a");
  CHECK((*jobs)[0].ideal_seconds == 150);
  CHECK((*jobs)[1].arrival_seconds == 100);
  CHECK((*jobs)[1].gpus == 8);
}

TEST_CASE("Sia's jobs run as long as the file says, or as Gavel's law does") {
  const auto with = parse(TraceFormat::kSia, "name,time,application,num_replicas,duration\nx,5,m5,2,60\n");
  REQUIRE(with.ok());
  CHECK((*with)[0].ideal_seconds == 60);
  CHECK((*with)[0].knee_cores_per_gpu == 7.5);
  const auto without = parse(TraceFormat::kSia, "time,name,application,num_replicas\n5,x,m5,2\n");
  REQUIRE(without.ok());
  CHECK((*without)[0].ideal_seconds >= 60 * 31);
}

TEST_CASE("Times can be scaled") {
  TraceAssumptions assumptions;
  assumptions.time_scale = 10;
  const auto jobs = parse(TraceFormat::kJobList, "30 1 100 1 0\n20 2 100 1 0\n", assumptions);
  REQUIRE(jobs.ok());
  CHECK((*jobs)[0].gpus == 2);
  CHECK((*jobs)[0].arrival_seconds == 2);
  CHECK((*jobs)[0].ideal_seconds == 10);
}

TEST_CASE("Bad lines are named") {
  struct Case {
    const char* name;
    TraceFormat format;
    const char* text;
    const char* want;
  };
  const Case cases[] = {
      {"too few fields", TraceFormat::kJobList, "1 2 3\n", "trace:1: a job is"},
      {"not a number", TraceFormat::kJobList, "# c\n1 1 x 1 1\n", "trace:2: ideal_s \"x\" is not a number"},
      {"half a GPU", TraceFormat::kJobList, "1 1.5 10 1 1\n", "trace:1: gpus must be a whole number"},
      {"less than no knee", TraceFormat::kJobList, "1 1 10 -1 1\n", "trace:1: kappa -1 is out of range"},
      {"nothing at all", TraceFormat::kJobList, "# only a comment\n", "trace:1: no jobs"},
      {"unknown model", TraceFormat::kPhilly, "VGG (x)\tc\ts\t1\t10\t0\t1\n", "trace:1: no profile for model \"vgg\""},
      {"no speed", TraceFormat::kPhilly, "m5\tc\ts\t1\t10\t0\t1\n", "has no steps_per_second"},
      {"missing column", TraceFormat::kAlibaba2023, "name,num_gpu\na,1\n", "trace:1: no column \"creation_time\""},
      {"bad cell", TraceFormat::kSia, "time,application,num_replicas\n1,lm,1\n2,lm,none\n", "trace:3: num_replicas"},
  };
  for (const Case& c : cases) {
    INFO(c.name);
    const auto jobs = parse(c.format, c.text);
    REQUIRE_FALSE(jobs.ok());
    CHECK_THAT(jobs.error().message(), Catch::Contains(c.want));
  }
  CHECK_FALSE(trace_format("philly2").ok());
}

TEST_CASE("Philly's fields are counted from the end, because commands hold tabs and any words") {
  const auto jobs =
      parse(TraceFormat::kPhilly, "ResNet-18 (batch size 32)\tcd a && b\tdir\t-x\t--steps\t1\t600\t0.5\t2\n");
  REQUIRE(jobs.ok());
  CHECK((*jobs)[0].ideal_seconds == 30);
  CHECK((*jobs)[0].gpus == 2);
  CHECK((*jobs)[0].name == "philly-1");
}

TEST_CASE("A model is known whatever its case and its batch size") {
  for (const char* model : {"resnet-18", "ResNet-18 (batch size 128)", "RESNET-18 (x)"}) {
    CAPTURE(model);
    const auto jobs = parse(TraceFormat::kPhilly, std::string(model) + "\tc\ts\t1\t100\t0\t1\n");
    REQUIRE(jobs.ok());
    CHECK((*jobs)[0].knee_cores_per_gpu == 7.2);
  }
}

TEST_CASE("Knees of the profiles are scaled to the GPUs of today, network rates with them") {
  TraceAssumptions assumptions;
  assumptions.knee_factor = 2.5;
  const auto jobs = parse(TraceFormat::kSia, "time,application,num_replicas,duration\n5,m5,2,60\n", assumptions);
  REQUIRE(jobs.ok());
  CHECK((*jobs)[0].knee_cores_per_gpu == Approx(18.75));
  CHECK((*jobs)[0].network_gbps_per_gpu == Approx(1.5));
  // A job list says everything itself.
  CHECK((*parse(TraceFormat::kJobList, "0 1 10 4 1\n", assumptions))[0].knee_cores_per_gpu == 4);
}

TEST_CASE("What a trace leaves out is drawn by seed: the same again, another for another") {
  std::string alibaba = "name,num_gpu,creation_time,deletion_time,scheduled_time\n";
  std::string sia = "time,application,num_replicas\n";
  for (int i = 0; i < 60; ++i) {
    alibaba += "p" + std::to_string(i) + ",1," + std::to_string(i) + ",900,100\n";
    sia += std::to_string(i) + ",lm,1\n";
  }
  const auto knees = [&](std::uint64_t seed) {
    TraceAssumptions assumptions;
    assumptions.seed = seed;
    std::vector<double> values;
    const auto alibaba_jobs = parse(TraceFormat::kAlibaba2023, alibaba, assumptions);
    for (const JobSpec& job : *alibaba_jobs) values.push_back(job.knee_cores_per_gpu);
    const auto sia_jobs = parse(TraceFormat::kSia, sia, assumptions);
    for (const JobSpec& job : *sia_jobs) values.push_back(job.ideal_seconds);
    return values;
  };
  CHECK(knees(1) == knees(1));
  CHECK(knees(1) != knees(2));
  // All three models are drawn.
  auto drawn = knees(1);
  drawn.resize(60);
  for (const double knee : {7.2, 0.5, 7.5}) CHECK(std::count(drawn.begin(), drawn.end(), knee) > 5);
}

TEST_CASE("Columns may stand in any order, lines may come from Windows, and further columns do not matter") {
  const auto jobs = parse(TraceFormat::kAlibaba2023,
                          "scheduled_time,qos,deletion_time,name,creation_time,num_gpu\r\n"
                          "150,LS,300,a,100,2\r\n");
  REQUIRE(jobs.ok());
  CHECK((*jobs)[0].name == "a");
  CHECK((*jobs)[0].gpus == 2);
  CHECK((*jobs)[0].ideal_seconds == 150);
}

TEST_CASE("Jobs come in the order of their arrival, whatever the order of the file") {
  const auto jobs = parse(TraceFormat::kJobList, "30 1 10 1 0\n10 2 10 1 0\n20 3 10 1 0\n10 4 10 1 0\n");
  REQUIRE(jobs.ok());
  std::vector<int> gpus;
  for (const JobSpec& job : *jobs) gpus.push_back(job.gpus);
  CHECK(gpus == std::vector<int>{2, 4, 3, 1});  // those of one moment as in the file
  CHECK((*jobs)[0].arrival_seconds == 10);      // a job list has its own origin
}

TEST_CASE("Odd job lists that say what they mean are read, however they were written") {
  struct Row {
    const char* situation;
    std::string text;
    std::vector<std::pair<double, double>> want;  // arrival, running time
  };
  const Row rows[] = {
      {"one job", "0 1 10 1 0\n", {{0, 10}}},
      {"no newline at the end", "0 1 10 1 0\n5 1 20 1 0", {{0, 10}, {5, 20}}},
      {"lines of Windows", "0 1 10 1 0\r\n5 1 20 1 0\r\n", {{0, 10}, {5, 20}}},
      {"Windows, and no newline at the end", "0 1 10 1 0\r\n5 1 20 1 0\r", {{0, 10}, {5, 20}}},
      {"an editor's mark before the first line",
       "\xEF\xBB\xBF"
       "0 1 10 1 0\n",
       {{0, 10}}},
      {"a mark before a comment", "\xEF\xBB\xBF# made by hand\r\n0 1 10 1 0\r\n", {{0, 10}}},
      {"tabs", "0\t1\t10\t1\t0\n", {{0, 10}}},
      {"tabs and blanks, before and after", " \t0 1\t 10 1 0 \t\n", {{0, 10}}},
      {"comments, indented ones, too", "# a\n  # b\n\t#c\n0 1 10 1 0\n#d", {{0, 10}}},
      {"remarks behind the fields",
       "0 1 10 1 0 # the first\n5 1 20 1 0\t#2\n7 1 5 1 0 #3 4 5\n",
       {{0, 10}, {5, 20}, {7, 5}}},
      {"empty lines, and lines of blanks", "\n \n\t\r\n0 1 10 1 0\n\n\n", {{0, 10}}},
      {"start and finish", "0 1 10 1 0 0 10\n5 1 20.25 1 0 10.5 30.75\n", {{0, 10}, {5, 20.25}}},
      {"start and finish on some lines", "0 1 10 1 0\n5 1 20 1 0 10 30\n", {{0, 10}, {5, 20}}},
      {"start and finish unknown", "0 1 10 1 0 -1 -1\n", {{0, 10}}},
      {"fractions, exponents and whole GPUs with a point",
       "0.125 1.0 1e-3 1e0 0.0\n2e1 2 0.5 5e-1 .5\n",
       {{0.125, 0.001}, {20, 0.5}}},
      {"all at once", "0 1 10 1 0\n0 2 20 1 0\n0 4 30 1 0\n", {{0, 10}, {0, 20}, {0, 30}}},
      {"the last line first", "9 1 1 1 0\n8 1 2 1 0\n7 1 3 1 0\n", {{7, 3}, {8, 2}, {9, 1}}},
      {"minus nothing", "-0 1 10 1 -0\n", {{0, 10}}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.situation);
    const auto jobs = parse(TraceFormat::kJobList, row.text);
    REQUIRE(jobs.ok());
    std::vector<std::pair<double, double>> found;
    for (const JobSpec& job : *jobs) found.emplace_back(job.arrival_seconds, job.ideal_seconds);
    CHECK(found == row.want);
  }
}

TEST_CASE("A job that needs no CPU for its data is one that needs hardly any") {
  for (const char* knee : {"0", "0.0", "1e-9", "0.001"}) {
    CAPTURE(knee);
    const auto jobs = parse(TraceFormat::kJobList, std::string("0 1 10 ") + knee + " 0\n");
    REQUIRE(jobs.ok());
    CHECK((*jobs)[0].knee_cores_per_gpu == kLeastKnee);
  }
}

TEST_CASE("Every format has a name, and a wrong one is told with those there are") {
  for (const char* name : {"joblist", "philly", "alibaba-v2023", "sia"}) CHECK(trace_format(name).ok());
  CHECK(trace_format("xml").error().message() == "--format xml: joblist, philly, alibaba-v2023 or sia");
}

}  // namespace
}  // namespace sluice::simulator
