#include "operator/observe/query_round.h"

#include <atomic>
#include <latch>
#include <set>
#include <stdexcept>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const std::vector<std::string> kExpressions = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"};

// An answer that names its expression.
Result<prom::InstantVector> named(const std::string& expression) {
  return prom::InstantVector{{{{{"expression", expression}}, 1, 0}}, {}, {}};
}

std::string name_in(const Result<prom::InstantVector>& answer) {
  return answer.ok() ? answer->samples.at(0).labels.at("expression") : answer.error().message();
}

TEST_CASE("answers stand in the order of their queries, however many are under way") {
  const int at_once = GENERATE(1, 4, 100);
  const sluice::testing::ManualClock clock;
  const auto answers = ask_all(
      kExpressions, [](const std::string& expression, std::stop_token, milliseconds) { return named(expression); },
      at_once, clock, {});
  REQUIRE(answers.size() == kExpressions.size());
  for (std::size_t index = 0; index < kExpressions.size(); ++index)
    CHECK(name_in(answers[index]) == kExpressions[index]);
}

TEST_CASE("one query at a time is asked on the caller's own thread") {
  const sluice::testing::ManualClock clock;
  std::set<std::thread::id> threads;
  const auto answers = ask_all(kExpressions,
                               [&](const std::string& expression, std::stop_token, milliseconds) {
                                 threads.insert(std::this_thread::get_id());
                                 return named(expression);
                               },
                               1, clock, {});
  CHECK(threads == std::set{std::this_thread::get_id()});
}

TEST_CASE("four queries are under way at a time, and no more") {
  const sluice::testing::ManualClock clock;
  std::latch four_there(4);
  std::atomic<int> under_way = 0, most = 0;
  const auto answers = ask_all(kExpressions,
                               [&](const std::string& expression, std::stop_token, milliseconds) {
                                 const int now = ++under_way;
                                 for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                                 }
                                 if (expression < "e") four_there.arrive_and_wait();
                                 --under_way;
                                 return named(expression);
                               },
                               4, clock, {});
  CHECK(most == 4);
}

TEST_CASE("a slow query holds none of the others up") {
  const sluice::testing::ManualClock clock;
  std::latch others(static_cast<std::ptrdiff_t>(kExpressions.size()) - 1);
  const auto answers =
      ask_all(kExpressions,
              [&](const std::string& expression, std::stop_token, milliseconds) -> Result<prom::InstantVector> {
                if (expression != "b") {
                  others.count_down();
                  return named(expression);
                }
                others.wait();
                return Error(ErrorCode::kDeadlineExceeded, "no answer in time");
              },
              4, clock, {});
  for (std::size_t index = 0; index < kExpressions.size(); ++index) CHECK(answers[index].ok() == (index != 1));
}

TEST_CASE("a round has one deadline: what does not fit is not asked, and says so") {
  sluice::testing::ManualClock clock;
  std::vector<milliseconds> patience;
  const auto answers = ask_all(kExpressions,
                               [&](const std::string& expression, std::stop_token, milliseconds timeout) {
                                 patience.push_back(timeout);
                                 clock.advance(seconds(4));
                                 return named(expression);
                               },
                               1, clock, {});
  CHECK(patience == std::vector<milliseconds>{seconds(10), seconds(6), seconds(2)});
  for (std::size_t index = 0; index < 3; ++index) CHECK(answers[index].ok());
  for (std::size_t index = 3; index < kExpressions.size(); ++index) {
    REQUIRE_FALSE(answers[index].ok());
    CHECK(answers[index].error().code() == ErrorCode::kDeadlineExceeded);
    CHECK(name_in(answers[index]) == "not asked, as the queries before it took 10 s together");
  }
}

TEST_CASE("a server that answers nothing is not asked everything; one that has answered is") {
  struct Case {
    const char* answered;  // the only query that is
    std::size_t want_asked;
  };
  const Case test = GENERATE(Case{"-", 4}, Case{"a", 14}, Case{"d", 14}, Case{"e", 4});
  INFO(test.answered);
  const sluice::testing::ManualClock clock;
  std::size_t asked = 0;
  const auto answers =
      ask_all(kExpressions,
              [&](const std::string& expression, std::stop_token, milliseconds) -> Result<prom::InstantVector> {
                ++asked;
                if (expression == test.answered) return named(expression);
                return unavailable("connection refused");
              },
              1, clock, {});
  CHECK(asked == test.want_asked);
  CHECK(name_in(answers[1]) == "connection refused");
  const bool silent = test.want_asked == 4;
  CHECK(name_in(answers[13]) ==
        (silent ? "not asked, as none of the queries before it was answered" : "connection refused"));
}

TEST_CASE("a query that throws is an error of its own") {
  const sluice::testing::ManualClock clock;
  const int at_once = GENERATE(1, 4);
  const auto answers =
      ask_all(kExpressions,
              [](const std::string& expression, std::stop_token, milliseconds) -> Result<prom::InstantVector> {
                if (expression == "c") throw std::runtime_error("odd");
                return named(expression);
              },
              at_once, clock, {});
  CHECK(name_in(answers[2]) == "query: odd");
  CHECK(answers[2].error().code() == ErrorCode::kInternal);
  CHECK(answers[3].ok());
}

}  // namespace
}  // namespace sluice::observe
