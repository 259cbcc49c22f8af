// Random jobs follow their recipe: counted over thousands of them.
#include <cmath>
#include <map>

#include "scheduler/simulator/input/scenario.h"
#include "scheduler/simulator/report/statistics.h"
#include "src/base/testing/catch.h"

namespace sluice::simulator {
namespace {

const Profiles kProfiles = {{"lm", {0.5, 0.02, 40}}, {"resnet", {7, 2, 20}}};

Recipe recipe() {
  Recipe recipe;
  recipe.jobs = 8000;
  recipe.models = {{"lm", 3}, {"resnet", 1}};
  return recipe;
}

Workload jobs_of(const Recipe& recipe, std::uint64_t seed = 1, int gpus = 64) {
  auto jobs = generate(recipe, gpus, kProfiles, seed);
  REQUIRE(jobs.ok());
  return std::move(jobs).value();
}

TEST_CASE("GPUs and models come in the shares of their weights, which need not add up to one") {
  Recipe wanted = recipe();
  wanted.gpus = {{1, 6}, {4, 3}, {8, 1}};
  std::map<int, double> gpus;
  double language = 0;
  for (const JobSpec& job : jobs_of(wanted)) {
    gpus[job.gpus] += 1.0 / wanted.jobs;
    language += job.knee_cores_per_gpu < 2 ? 1.0 / wanted.jobs : 0;
  }
  CHECK(gpus.size() == 3);
  CHECK(gpus[1] == Approx(0.6).margin(0.02));
  CHECK(gpus[4] == Approx(0.3).margin(0.02));
  CHECK(gpus[8] == Approx(0.1).margin(0.02));
  CHECK(language == Approx(0.75).margin(0.02));
}

TEST_CASE("A weight of nothing is never drawn") {
  Recipe wanted = recipe();
  wanted.models = {{"lm", 0}, {"resnet", 1}};
  wanted.gpus = {{1, 0}, {2, 1}};
  for (const JobSpec& job : jobs_of(wanted)) {
    CHECK(job.gpus == 2);
    CHECK(job.knee_cores_per_gpu > 2);
  }
}

TEST_CASE("Running times follow Gavel's law: a fifth of the jobs is long, and the divisor shortens all") {
  const Workload plain = jobs_of(recipe());
  double longer = 0;
  for (const JobSpec& job : plain) {
    const double minutes = job.ideal_seconds * 10 / 60;  // the divisor is 10
    CHECK(minutes >= std::pow(10, 1.5) * 0.999);
    CHECK(minutes <= 1e4 * 1.001);
    longer += minutes > 1000 ? 1 : 0;
  }
  CHECK(longer / 8000 == Approx(0.2).margin(0.02));
  Recipe shorter = recipe();
  shorter.duration_divisor = 100;
  CHECK(jobs_of(shorter)[5].ideal_seconds == Approx(plain[5].ideal_seconds / 10));
}

TEST_CASE("The load is what the jobs bring over what the GPUs can do meanwhile") {
  for (const double load : {0.4, 0.8, 2.0}) {
    for (const int gpus : {16, 64}) {
      CAPTURE(load, gpus);
      Recipe wanted = recipe();
      wanted.load = load;
      const Workload jobs = jobs_of(wanted, 3, gpus);
      double work = 0;
      for (const JobSpec& job : jobs) work += job.gpu_seconds();
      CHECK(work / jobs.back().arrival_seconds / gpus == Approx(load).epsilon(0.1));
    }
  }
}

TEST_CASE("Arrivals have the burstiness of the recipe, in order, with the same mean") {
  for (const double burstiness : {1.0, 2.0, 4.0}) {
    CAPTURE(burstiness);
    Recipe wanted = recipe();
    wanted.burstiness = burstiness;
    wanted.jobs = 40000;
    const Workload jobs = jobs_of(wanted);
    std::vector<double> gaps;
    for (std::size_t i = 1; i < jobs.size(); ++i) {
      gaps.push_back(jobs[i].arrival_seconds - jobs[i - 1].arrival_seconds);
      CHECK(gaps.back() >= 0);
    }
    const double center = mean(gaps);
    double squares = 0;
    for (const double gap : gaps) squares += (gap - center) * (gap - center);
    CHECK(std::sqrt(squares / static_cast<double>(gaps.size())) / center == Approx(burstiness).epsilon(0.1));
  }
}

TEST_CASE("Knees are the profiles', times the factor, with the spread that is asked for") {
  Recipe wanted = recipe();
  wanted.models = {{"resnet", 1}};
  wanted.knee_factor = 2.5;
  wanted.knee_spread = 0;
  for (const JobSpec& job : jobs_of(wanted)) {
    CHECK(job.knee_cores_per_gpu == Approx(17.5));
    CHECK(job.network_gbps_per_gpu == Approx(5));
  }
  wanted.knee_spread = 0.3;
  double sum = 0, squares = 0;
  for (const JobSpec& job : jobs_of(wanted)) {
    const double log = std::log(job.knee_cores_per_gpu / 17.5);
    sum += log;
    squares += log * log;
  }
  CHECK(sum / wanted.jobs == Approx(0).margin(0.02));
  CHECK(std::sqrt(squares / wanted.jobs) == Approx(0.3).epsilon(0.05));
}

TEST_CASE("A job does not depend on how many come after it") {
  Recipe few = recipe();
  few.jobs = 10;
  const Workload short_list = jobs_of(few), long_list = jobs_of(recipe());
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(short_list[i].ideal_seconds == long_list[i].ideal_seconds);
    CHECK(short_list[i].gpus == long_list[i].gpus);
    CHECK(short_list[i].knee_cores_per_gpu == long_list[i].knee_cores_per_gpu);
  }
}

TEST_CASE("The same seed draws the same jobs, another one others; a model without a profile is named") {
  CHECK(jobs_of(recipe(), 1)[7].ideal_seconds == jobs_of(recipe(), 1)[7].ideal_seconds);
  CHECK(jobs_of(recipe(), 1)[7].ideal_seconds != jobs_of(recipe(), 2)[7].ideal_seconds);
  Recipe unknown = recipe();
  unknown.models = {{"vgg", 1}};
  CHECK(generate(unknown, 8, kProfiles, 1).error().message() == "there is no profile \"vgg\"");
}

}  // namespace
}  // namespace sluice::simulator
