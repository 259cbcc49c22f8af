#include "src/executor/call_ledger.h"

#include <string>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::executor {
namespace {

using transport::CallReport;

// Two marked functions, one within the other, as one process calls them over epochs: a clock that counts what they
// take, and which results there are.
class Simulated {
 public:
  struct Costs {
    double inner_seconds = 0;  // making the inner result
    double rest_seconds = 0;   // making the outer one of it
    double inner_hit_seconds = 0;
    double outer_hit_seconds = 0;
  };

  Simulated(Costs costs, std::size_t samples) : costs_(costs), inner_(samples), outer_(samples) {}

  // The seconds that an epoch takes.
  double epoch() {
    const double before = now_;
    for (Function* function : {&inner_, &outer_}) function->calls = function->found = 0;
    for (std::size_t sample = 0; sample < inner_.has.size(); ++sample) call_outer(sample);
    return now_ - before;
  }
  double outer_share_found() const { return outer_.share_found(); }
  double inner_share_found() const { return inner_.share_found(); }
  void set_costs(Costs costs) { costs_ = costs; }

 private:
  struct Function {
    explicit Function(std::size_t samples) : has(samples) {}
    double share_found() const { return static_cast<double>(found) / static_cast<double>(std::max<int>(1, calls)); }

    CallLedger ledger;
    std::vector<bool> has;
    std::uint64_t rest = 0;
    int calls = 0;  // of the last epoch
    int found = 0;
  };

  // As python/sluice/executor/kept_calls.py does.
  template <typename Make>
  void call(Function& function, std::size_t sample, double hit_seconds, Make make) {
    ++function.calls;
    CallReport report;
    bool keeps = false;
    if (function.rest > 0) {
      --function.rest;
    } else {
      const auto advice = function.ledger.next();
      function.rest = advice.rest;
      keeps = advice.keeps;
      if (advice.asks && function.has[sample]) {
        function.ledger.note_found();
        now_ += hit_seconds;
        report.hits = 1;
        report.hit_seconds = hit_seconds;
        ++function.found;
        return function.ledger.add(report);
      }
      ++unusual_;
    }
    const auto unusual = unusual_;
    const double start = now_;
    make();
    (unusual == unusual_ ? report.calls : report.cold_calls) = 1;
    (unusual == unusual_ ? report.call_seconds : report.cold_seconds) = now_ - start;
    if (keeps) {
      function.has[sample] = true;
      report.stores = 1;
    }
    function.ledger.add(report);
  }

  void call_outer(std::size_t sample) {
    call(outer_, sample, costs_.outer_hit_seconds, [&] {
      call(inner_, sample, costs_.inner_hit_seconds, [&] { now_ += costs_.inner_seconds; });
      now_ += costs_.rest_seconds;
    });
  }

  Costs costs_;
  Function inner_, outer_;
  double now_ = 0;
  std::uint64_t unusual_ = 0;
};

// Cachew's synthetic pipeline (systems with 200 to 550 ms of computing a batch; AE figures of ATC'22): milliseconds a
// batch with everything kept, with the source kept, and with nothing kept.
struct Published {
  double computing = 0;
  double full = 0;
  double source = 0;
  double compute = 0;
};
constexpr Published kPublished[] = {
    {200, 430, 267, 309}, {250, 431, 267, 298}, {300, 432, 304, 307}, {350, 433, 352, 354},
    {400, 434, 401, 408}, {450, 435, 453, 454}, {500, 436, 501, 506}, {550, 437, 551, 552},
};

Simulated::Costs costs_of(const Published& row) {
  constexpr double kSourceHit = 40;
  return {.inner_seconds = (row.compute - row.source + kSourceHit) / 1e3,
          .rest_seconds = (row.source - kSourceHit) / 1e3,
          .inner_hit_seconds = kSourceHit / 1e3,
          .outer_hit_seconds = row.full / 1e3};
}

TEST_CASE("Cachew's grid gives source, either, and full, and is never 5 % worse than the best of them") {
  constexpr int kEpochs = 5;
  constexpr std::size_t kBatches = 1400;  // of an epoch there
  for (const Published& row : kPublished) {
    INFO("computing " << row.computing << " ms");
    Simulated simulated(costs_of(row), kBatches);
    const double first = simulated.epoch();
    CHECK(first == Approx(kBatches * row.compute / 1e3).epsilon(0.001));
    double rest = 0;
    for (int epoch = 1; epoch < kEpochs; ++epoch) rest += simulated.epoch();
    const double best = std::min({row.full, row.source, row.compute}) / 1e3;
    CHECK(rest <= 1.05 * (kEpochs - 1) * kBatches * best);
    const bool is_full = row.full < row.source;
    CHECK((simulated.outer_share_found() > 0.9) == is_full);
    if (row.source < 0.97 * row.compute) CHECK(simulated.inner_share_found() > 0.9);
  }
}

TEST_CASE("the outer function is compared with what it takes once the inner one is found") {
  // Finding the outer result beats the first epoch's calls, and not those in which the inner result is found.
  constexpr std::size_t kSamples = 2000;
  Simulated simulated({.inner_seconds = 0.3, .rest_seconds = 0.2, .inner_hit_seconds = 0.05, .outer_hit_seconds = 0.43},
                      kSamples);
  simulated.epoch();
  double rest = 0;
  for (int epoch = 1; epoch < 5; ++epoch) rest += simulated.epoch();
  CHECK(rest <= 1.05 * 4 * kSamples * 0.25);
  CHECK(simulated.outer_share_found() < 0.1);
  CHECK(simulated.inner_share_found() > 0.9);
}

TEST_CASE("a result is kept and asked for only where finding it takes less than making it") {
  struct Case {
    const char* story;
    double call_seconds;
    double hit_seconds;
    double wants_found;  // share of the last of four epochs
  };
  const Case cases[] = {
      {"it is ten times as fast", 5e-3, 5e-4, 1},     {"it is a fifth faster", 1e-3, 8e-4, 1},
      {"it is a fifth slower", 1e-3, 1.2e-3, 0},      {"it is a hundred times slower", 1e-5, 1e-3, 0},
      {"it is a thousand times as fast", 1, 1e-3, 1},
  };
  for (const Case& each : cases) {
    INFO(each.story);
    Simulated simulated(
        {.inner_seconds = each.call_seconds, .inner_hit_seconds = each.hit_seconds, .outer_hit_seconds = 1e9}, 2000);
    for (int epoch = 0; epoch < 4; ++epoch) simulated.epoch();
    CHECK(simulated.inner_share_found() == Approx(each.wants_found).margin(0.03));
  }
}

TEST_CASE("a function that becomes dear is found again, and one that becomes cheap is made again") {
  const auto with = [](double call_seconds) {
    return Simulated::Costs{.inner_seconds = call_seconds, .inner_hit_seconds = 1e-3, .outer_hit_seconds = 1e9};
  };
  Simulated simulated(with(5e-3), 10000);
  for (int epoch = 0; epoch < 2; ++epoch) simulated.epoch();
  CHECK(simulated.inner_share_found() > 0.9);
  simulated.set_costs(with(5e-4));
  for (int epoch = 0; epoch < 2; ++epoch) simulated.epoch();
  CHECK(simulated.inner_share_found() < 0.1);
  simulated.set_costs(with(5e-3));
  for (int epoch = 0; epoch < 2; ++epoch) simulated.epoch();
  CHECK(simulated.inner_share_found() > 0.9);
}

TEST_CASE("what keeping takes must come back with the next hit") {
  const auto keeps = [](double call_seconds, double store_seconds) {
    CallLedger ledger;
    ledger.add({.function = "f",
                .calls = 20,
                .call_seconds = 20 * call_seconds,
                .stores = 20,
                .store_seconds = 20 * store_seconds});
    const auto advice = ledger.next();
    return advice.keeps && advice.rest == 0;
  };
  CHECK(keeps(1, 0.1));
  CHECK(keeps(1, 0.4));
  CHECK_FALSE(keeps(1, 0.6));
  CHECK_FALSE(keeps(1, 10));
}

TEST_CASE("a process that stands still for a second does not stop what pays, or not for long") {
  struct Case {
    double call_seconds;
    std::uint64_t calls_max;  // until results are asked for again
  };
  for (const Case& each : {Case{5e-3, 0}, Case{1e-3, 2000}}) {
    INFO("a call takes " << each.call_seconds);
    CallLedger ledger;
    ledger.add({.function = "f", .calls = 64, .call_seconds = 64 * each.call_seconds});
    const CallReport hits{.function = "f", .hits = 64, .hit_seconds = 64 * 5e-4};
    ledger.note_found();
    for (int batch = 0; batch < 4; ++batch) ledger.add(hits);
    ledger.add({.function = "f", .hits = 64, .hit_seconds = 63 * 5e-4 + 1});
    std::uint64_t calls = 0;
    for (auto advice = ledger.next(); advice.rest > 0; advice = ledger.next()) {
      calls += 1 + advice.rest;
      ledger.add({.function = "f", .calls = advice.rest, .call_seconds = advice.rest * each.call_seconds});
      ledger.add({.function = "f", .hits = 1, .hit_seconds = 5e-4});
    }
    CHECK(calls <= each.calls_max);
  }
}

TEST_CASE("keeping that a busy machine made dear is tried at times, and goes on once it is cheap") {
  constexpr double kCallSeconds = 4e-3, kHitSeconds = 1e-3;
  constexpr int kCalls = 4000;
  for (const double store_seconds : {3e-4, 1e-2}) {  // from now on
    INFO("keeping takes " << store_seconds);
    CallLedger ledger;
    ledger.add({.function = "f", .calls = 32, .call_seconds = 32 * kCallSeconds});
    ledger.add({.function = "f", .stores = 16, .store_seconds = 16 * 5e-3});
    ledger.note_found();
    ledger.add({.function = "f", .hits = 16, .hit_seconds = 16 * kHitSeconds});
    CHECK_FALSE(ledger.next().keeps);
    int kept = 0, kept_late = 0;
    for (int call = 0; call < kCalls; ++call) {  // of results that are not there
      const auto advice = ledger.next();
      ledger.add({.function = "f", .calls = 1, .call_seconds = kCallSeconds});
      if (!advice.keeps) continue;
      ledger.add({.function = "f", .stores = 1, .store_seconds = store_seconds});
      ++kept;
      if (call >= kCalls / 2) ++kept_late;
    }
    if (store_seconds < kCallSeconds - kHitSeconds) {
      CHECK(kept_late >= 0.98 * kCalls / 2);  // but for calls that are made at a trial, and not asked about
    } else {
      CHECK(kept > 0);
      CHECK(kept * store_seconds <= 2 * CallLedger::kTrialShare * kCalls * kCallSeconds);
    }
  }
}

TEST_CASE("hits have saved what calls take, once that is known") {
  const CallReport hits{.function = "f", .hits = 10, .hit_seconds = 1};
  CallLedger ledger;
  ledger.add(hits);
  CHECK(ledger.saved_seconds(hits) == 0);
  ledger.add({.function = "f", .calls = 10, .call_seconds = 20});
  CHECK(ledger.saved_seconds(hits) == Approx(19));
}

TEST_CASE("a mean forgets what lies behind") {
  RecentMean mean;
  CHECK(mean.mean() == 0);
  mean.add(7, 7);
  CHECK_FALSE(mean.is_known());
  mean.add(1, 1);
  CHECK(mean.is_known());
  CHECK(mean.mean() == 1);
  mean.add(1000, 3000);
  CHECK(mean.mean() == 3);
  mean.add(1000, 1e9);
  CHECK(mean.mean() == 12);
}

}  // namespace
}  // namespace sluice::executor
