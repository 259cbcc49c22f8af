#include "operator/decide/learnt_jobs.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::decide {
namespace {

using nlohmann::json;
using scheduler::EstimatorMemory;
using scheduler::Tracked;

constexpr double kNow = 1'800'000'000;
constexpr double kDay = 24 * 3600;

EstimatorMemory memory(double knee) {
  EstimatorMemory memory;
  memory.demand_samples_per_second = 1000 * knee;
  memory.local_rate_per_core = Tracked::starting_at(1000);
  memory.remote_rate_per_core = Tracked::starting_at(770);
  memory.knee_cores = Tracked::starting_at(knee);
  memory.feedback = 1.2;
  memory.was_measured = true;
  memory.folded_through_seconds = kNow;
  return memory;
}

TEST_CASE("a job like one that ran before begins with its knee, rates and workers") {
  LearntJobs jobs;
  jobs.learn("abc", memory(4), 3, std::nullopt, kNow);
  const auto known = jobs.find("abc", kNow + kDay);
  REQUIRE(known.has_value());
  CHECK(known->workers == 3);
  CHECK(known->memory.knee_cores->published == 4);
  CHECK(known->memory.local_rate_per_core->published == 1000);
  CHECK(known->memory.remote_rate_per_core->published == 770);
  CHECK(known->memory.feedback == 1.2);
  CHECK_FALSE(jobs.find("other", kNow).has_value());
}

TEST_CASE("of jobs with other settings the newest is the guess, until one with the same settings has run") {
  LearntJobs jobs;
  jobs.learn("a.python", memory(4), 3, std::nullopt, kNow);
  jobs.learn("a.cached", memory(2), 2, std::nullopt, kNow + 1);
  jobs.learn("b.native", memory(9), 9, std::nullopt, kNow + 2);
  CHECK(jobs.find("a.native", kNow + kDay)->workers == 2);
  jobs.learn("a.native", memory(1), 1, std::nullopt, kNow + 3);
  CHECK(jobs.find("a.native", kNow + kDay)->workers == 1);
  CHECK(jobs.find("a.python", kNow + kDay)->workers == 3);
  CHECK_FALSE(jobs.find("aa.native", kNow + kDay).has_value());
}

TEST_CASE("it is not taken for measured, and the first measurement weighs as much as what was learnt") {
  LearntJobs jobs;
  EstimatorMemory old = memory(4);
  for (int i = 0; i < 100; ++i) old.knee_cores->take(4, {});
  jobs.learn("abc", old, 3, std::nullopt, kNow);
  EstimatorMemory now = jobs.find("abc", kNow)->memory;
  CHECK_FALSE(now.was_measured);
  CHECK(now.folded_through_seconds == 0);
  now.knee_cores->take(8, {});
  CHECK(now.knee_cores->recent == Approx(std::sqrt(4 * 8.0)));
}

TEST_CASE("what was learnt survives the operator") {
  LearntJobs jobs;
  jobs.learn("abc", memory(4), 3, std::nullopt, kNow);
  LearntJobs later;
  later.load(jobs.data(), kNow + kDay);
  CHECK(later.find("abc", kNow + kDay)->workers == 3);
  CHECK(later.data() == jobs.data());
}

TEST_CASE("what is old, or no such entry, is forgotten") {
  LearntJobs jobs;
  jobs.learn("abc", memory(4), 3, std::nullopt, kNow);
  CHECK_FALSE(jobs.find("abc", kNow + 31 * kDay).has_value());
  LearntJobs later;
  later.load(jobs.data(), kNow + 31 * kDay);
  CHECK(later.data().empty());
  later.load({{"a", 7},
              {"b", "no JSON"},
              {"c", R"({"knee": -1, "demand": 5, "localRate": 5, "at": 1800000000})"},
              {"d", R"({"knee": 1, "demand": 5, "at": 1800000000})"}},
             kNow);
  later.load(json::array(), kNow);
  CHECK(later.data().empty());
}

TEST_CASE("a job without a knee teaches nothing") {
  LearntJobs jobs;
  jobs.learn("abc", {}, 3, std::nullopt, kNow);
  CHECK(jobs.data().empty());
  CHECK_FALSE(jobs.has_news());
}

TEST_CASE("only what changed noticeably is news") {
  LearntJobs jobs;
  jobs.learn("abc", memory(4), 3, std::nullopt, kNow);
  CHECK(jobs.has_news());
  jobs.written();
  jobs.learn("abc", memory(4.2), 3, std::nullopt, kNow + 15);
  CHECK_FALSE(jobs.has_news());
  jobs.learn("abc", memory(4.2), 4, std::nullopt, kNow + 30);
  CHECK(jobs.has_news());
}

TEST_CASE("the size of a worker is learnt where Sluice had chosen it, and another size is news") {
  LearntJobs jobs;
  const api::WorkerSize size{500, std::int64_t{3} << 30};
  jobs.learn("abc", memory(4), 3, size, kNow);
  jobs.learn("stated", memory(4), 3, std::nullopt, kNow);
  LearntJobs later;
  later.load(jobs.data(), kNow);
  CHECK(later.find("abc", kNow)->size == size);
  CHECK_FALSE(later.find("stated", kNow)->size.has_value());
  jobs.written();
  jobs.learn("abc", memory(4), 3, size, kNow);
  CHECK_FALSE(jobs.has_news());
  jobs.learn("abc", memory(4), 3, api::WorkerSize{500, std::int64_t{2} << 30}, kNow);
  CHECK(jobs.has_news());
}

TEST_CASE("a size of which half is missing or wrong is none") {
  for (const char* part : {"workerMillicores", "workerMemory"}) {
    CAPTURE(part);
    LearntJobs jobs;
    jobs.learn("abc", memory(4), 3, api::WorkerSize{500, 1000}, kNow);
    json entry = json::parse(jobs.data()["abc"].get<std::string>());
    for (const json& damage : {json(-1), json(0), json("much"), json(1e300)}) {
      entry[part] = damage;
      LearntJobs later;
      later.load({{"abc", entry.dump()}}, kNow);
      REQUIRE(later.find("abc", kNow).has_value());
      CHECK_FALSE(later.find("abc", kNow)->size.has_value());
    }
  }
}

TEST_CASE("the oldest of more than five hundred goes") {
  LearntJobs jobs;
  for (int i = 0; i <= 500; ++i) jobs.learn("job-" + std::to_string(i), memory(4), 1, std::nullopt, kNow + i);
  CHECK(jobs.data().size() == 500);
  CHECK_FALSE(jobs.find("job-0", kNow + 600).has_value());
  CHECK(jobs.find("job-500", kNow + 600).has_value());
}

}  // namespace
}  // namespace sluice::decide
