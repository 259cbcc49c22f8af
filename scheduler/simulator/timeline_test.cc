// Time lines add up to what the run says, and their drawings are well-formed whatever jobs are called.
#include "scheduler/simulator/timeline.h"

#include <algorithm>
#include <cmath>

#include "scheduler/simulator/testing/worlds.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

using testing::job;

// Half speed from 10 to 40 s, full speed from there to 70 s.
JobRecord stepped() {
  JobRecord record;
  record.start_seconds = 10;
  record.finish_seconds = 70;
  record.timeline = {{10, 0.5, 4, 0, 8}, {40, 1, 4, 6, 8}};
  return record;
}

TEST_CASE("A bucket holds the mean of what lies in it, edges and all") {
  RunRecord run;
  run.jobs = {stepped()};
  const auto buckets = buckets_of(run, {job(0, 2, 45, 4)}, 20, 5);
  struct Row {
    double allocated, busy, local, remote;
  };
  const Row rows[] = {{1, 0.5, 2, 0}, {2, 1, 4, 0}, {2, 2, 4, 6}, {1, 1, 2, 3}, {0, 0, 0, 0}};
  for (int i = 0; i < 5; ++i) {
    CAPTURE(i);
    CHECK(buckets[i].gpus_allocated == Approx(rows[i].allocated));
    CHECK(buckets[i].gpus_busy == Approx(rows[i].busy));
    CHECK(buckets[i].local_cores == Approx(rows[i].local));
    CHECK(buckets[i].remote_cores == Approx(rows[i].remote));
  }
}

TEST_CASE("One job's buckets are means over the part in which it runs") {
  const auto buckets = job_buckets(stepped(), 20, 5);
  CHECK(buckets[0].speed == Approx(0.5));  // ten of twenty seconds, all of them at half speed
  CHECK(buckets[1].speed == Approx(0.5));
  CHECK(buckets[2].speed == Approx(1));
  CHECK(buckets[2].remote_cores == Approx(6));
  CHECK(buckets[3].wanted_cores == Approx(8));
  CHECK(buckets[4].speed < 0);  // it is through
}

TEST_CASE("What comes after the last bucket is not lost, and steps of no length are no trouble") {
  JobRecord late = stepped();
  late.timeline.insert(late.timeline.begin() + 1, {40, 0.1, 4, 0, 8});
  late.finish_seconds = 100.0001;
  RunRecord run;
  run.jobs = {late};
  const auto buckets = buckets_of(run, {job(0, 1, 45, 4)}, 20, 5);
  double busy = 0;
  for (const Bucket& bucket : buckets) busy += 20 * bucket.gpus_busy;
  CHECK(busy == Approx(15 + 60.0001));
}

TEST_CASE("The time lines of a run integrate to its figures") {
  RunOptions options;
  options.timeline = true;
  const Workload jobs = {job(0, 4, 500, 9), job(100, 8, 300, 2), job(130, 8, 250, 12)};
  testing::ScriptedPolicy policy(
      [](const scheduler::Job& each, scheduler::JobPlan& plan) { plan.workers = each.gpus == 4 ? 12 : 7; });
  const auto run = simulate(testing::small_cluster(), jobs, policy, options);
  REQUIRE(run.ok());
  constexpr int kCount = 37;
  const double width = run->makespan_seconds / kCount;
  double busy = 0, allocated = 0, cores = 0, want_busy = 0, want_allocated = 0, want_cores = 0;
  for (const Bucket& bucket : buckets_of(*run, jobs, width, kCount)) {
    busy += width * bucket.gpus_busy;
    allocated += width * bucket.gpus_allocated;
    cores += width * (bucket.local_cores + bucket.remote_cores);
  }
  for (const JobRecord& each : run->jobs) {
    want_busy += each.busy_gpu_seconds;
    want_allocated += each.allocated_gpu_seconds;
    want_cores += each.core_seconds;
  }
  CHECK(busy == Approx(want_busy));
  CHECK(allocated == Approx(want_allocated));
  CHECK(cores == Approx(want_cores));
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("Charts are closed, have a scale with a unit, and stay inside their frame") {
  std::vector<Bucket> buckets(10);
  for (int i = 0; i < 10; ++i) buckets[i] = {16, 1.6 * i, 48, 500.0};  // more cores than there are
  struct Row {
    std::string chart;
    const char* top;
  };
  const Row rows[] = {{gpu_chart(buckets, 720, 16), "16 GPUs"}, {cpu_chart(buckets, 720, 112), "112 cores"}};
  for (const Row& row : rows) {
    CHECK_THAT(row.chart, Catch::StartsWith("<svg") && Catch::EndsWith("</svg>\n"));
    CHECK_THAT(row.chart, Catch::Contains(row.top) && Catch::Contains(" min</text>"));
    CHECK(count_of(row.chart, "<path") == 2);
    CHECK(count_of(row.chart, "<text") == count_of(row.chart, "</text>"));
    CHECK_THAT(row.chart, !Catch::Contains("nan") && !Catch::Contains("inf") && !Catch::Contains("V-"));
  }
}

TEST_CASE("Short and long runs have a handful of ticks, not none and not a hundred") {
  const std::vector<Bucket> buckets(10);
  for (const double seconds : {30.0, 600.0, 3600.0, 20000.0, 86400.0, 1e6, 3e7}) {
    CAPTURE(seconds);
    const int ticks = count_of(gpu_chart(buckets, seconds / 10, 16), "<line");
    CHECK(ticks >= 3);
    CHECK(ticks <= 12);
  }
}

TEST_CASE("Ticks that stand side by side do not read alike") {
  const std::vector<Bucket> buckets(10);
  for (const double seconds : {30.0, 130.0, 600.0, 1500.0, 3600.0, 20000.0}) {
    CAPTURE(seconds);
    std::string chart = gpu_chart(buckets, seconds / 10, 16);
    std::vector<std::string> labels;
    for (std::size_t at = chart.find("<text"); at != std::string::npos; at = chart.find("<text", at + 1)) {
      const std::size_t begin = chart.find('>', at) + 1;
      labels.push_back(chart.substr(begin, chart.find('<', begin) - begin));
    }
    const std::size_t count = labels.size();
    std::sort(labels.begin(), labels.end());
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
    CHECK(labels.size() == count);
  }
}

TEST_CASE("The largest jobs have a strip each, in the order of the workload") {
  RunRecord run;
  Workload jobs;
  for (int i = 0; i < 5; ++i) {
    run.jobs.push_back(stepped());
    jobs.push_back(job(0, 1 + i % 3, 45, 4));
    jobs.back().name = "job-" + std::to_string(i);
  }
  const std::string chart = job_chart(run, jobs, 20, 4, 3);
  CHECK(count_of(chart, ">job-1</text>") == 1);  // 2 GPUs
  CHECK(count_of(chart, ">job-2</text>") == 1);  // 3 GPUs
  CHECK(count_of(chart, ">job-4</text>") == 1);  // 2 GPUs
  CHECK(count_of(chart, ">job-0</text>") == 0);
  CHECK(chart.find(">job-1<") < chart.find(">job-2<"));
  CHECK_THAT(chart, Catch::Contains("hsl(60 ") && Catch::Contains("hsl(120 "));  // half speed, full speed
  CHECK_THAT(chart, Catch::Contains("50 % of full speed with 4.0 local and 0.0 remote cores of 8.0 wanted"));
}

TEST_CASE("A job may have any name, as traces do, without breaking the page") {
  RunRecord run;
  run.jobs = {stepped()};
  Workload jobs = {job(0, 2, 45, 4)};
  jobs[0].name = "a<b>&\"c\"";
  const std::string chart = job_chart(run, jobs, 20, 4, 3);
  CHECK_THAT(chart, Catch::Contains("a&lt;b&gt;&amp;&quot;c&quot;"));
  CHECK_THAT(chart, !Catch::Contains("<b>"));
}

}  // namespace
}  // namespace sluice::simulator
