#include "src/cache/form_ledger.h"

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

constexpr double kMillisecond = 1e-3;
constexpr std::uint64_t kAllFits = std::uint64_t{1} << 40;
constexpr TriedForm kFromFile{100e3, 0, 0.8 * kMillisecond};
constexpr TriedForm kCoefficients{200e3, 0.4 * kMillisecond, 0.3 * kMillisecond};
constexpr TriedForm kOutput{150e3, 0.2 * kMillisecond, 0.1 * kMillisecond};
constexpr double kReadingPerByte = 0.02 * kMillisecond / 100e3;

struct Ledger : FormLedger {
  explicit Ledger(std::size_t samples = 100, std::uint64_t page_cache_bytes = kAllFits)
      : FormLedger(samples, page_cache_bytes) {}

  Ledger& tries(int trials, double wait_seconds, bool has_coefficients = true, bool has_output = true) {
    for (int i = 0; i < trials; ++i) {
      Trial trial{wait_seconds, asking_seconds, kFromFile, {}, {}};
      if (has_coefficients) trial.coefficients = kCoefficients;
      if (has_output) trial.output = kOutput;
      note_trial(trial);
    }
    return *this;
  }
  Ledger& gives(std::size_t samples, std::optional<Keep> from, double wait_seconds = 0) {
    const double bytes = from == Keep::kTranscoded ? kCoefficients.bytes
                         : from == Keep::kOutput   ? kOutput.bytes
                                                   : kFromFile.bytes;
    for (std::size_t i = 0; i < samples; ++i) note({from, wait_seconds, reading_per_byte * bytes, bytes});
    return *this;
  }
  std::optional<FormCost> cost(Keep form) const { return table(0).forms[static_cast<std::size_t>(form)]; }

  double asking_seconds = 0;
  double reading_per_byte = kReadingPerByte;
};

TEST_CASE("a sample takes what was measured of its form, and reading it") {
  const FormTable table = Ledger().tries(5, 0).gives(1, std::nullopt).table(123);
  CHECK(table.samples == 100);
  CHECK(table.epochs == FormLedger::kEpochsMin);
  CHECK(table.room_bytes == 123);
  CHECK(table.none_seconds == Approx(0.82 * kMillisecond));
  CHECK_FALSE(table.forms[0].has_value());  // a fast source has nothing to keep
  CHECK(table.forms[1]->seconds == Approx(0.34 * kMillisecond));
  CHECK(table.forms[1]->bytes == Approx(200e3));
  CHECK(table.forms[1]->making_seconds == Approx(0.48 * kMillisecond));  // stored with twice what reading takes
  CHECK(table.forms[2]->seconds == Approx(0.13 * kMillisecond));
  CHECK(table.forms[2]->stored == 0);
}

TEST_CASE("a record's bytes take what those of its form have taken, before there were any what the source's have") {
  Ledger ledger;
  ledger.asking_seconds = 0.05 * kMillisecond;
  ledger.tries(5, 0).gives(3, std::nullopt);
  CHECK(ledger.table(0).none_seconds == Approx(0.82 * kMillisecond));
  CHECK(ledger.cost(Keep::kTranscoded)->seconds == Approx(0.39 * kMillisecond));
  CHECK(ledger.cost(Keep::kOutput)->seconds == Approx(0.18 * kMillisecond));
  ledger.reading_per_byte = 3 * kReadingPerByte;
  ledger.gives(2, Keep::kOutput);
  CHECK(ledger.table(0).none_seconds == Approx(0.82 * kMillisecond));
  CHECK(ledger.cost(Keep::kTranscoded)->seconds == Approx(0.39 * kMillisecond));
  CHECK(ledger.cost(Keep::kOutput)->seconds == Approx(0.24 * kMillisecond));
}

TEST_CASE("all samples tell whether those that were tried are dearer or larger than usual") {
  Ledger ledger;
  ledger.reading_per_byte = 0;
  ledger.tries(5, 0);
  const auto made = [&](std::size_t samples, std::optional<Keep> from) {
    for (std::size_t i = 0; i < samples; ++i)
      ledger.note({from, 0, 0, 0.5 * kFromFile.bytes, 0.25 * kFromFile.seconds});
  };
  made(FormLedger::kMadeMin - 2, std::nullopt);
  ledger.note({Keep::kOutput, 0, 0, 1, std::nullopt});  // made of something else
  CHECK(ledger.table(0).none_seconds == Approx(kFromFile.seconds));
  made(2, Keep::kSource);
  CHECK(ledger.table(0).none_seconds == Approx(0.25 * kFromFile.seconds));
  CHECK(ledger.cost(Keep::kTranscoded)->seconds == Approx(0.25 * kCoefficients.seconds));
  CHECK(ledger.cost(Keep::kTranscoded)->making_seconds == Approx(0.25 * kCoefficients.making_seconds));
  CHECK(ledger.cost(Keep::kTranscoded)->bytes == Approx(0.5 * kCoefficients.bytes));
}

TEST_CASE("reads that waited do not tell the CPU of a read") {
  constexpr double kUsual = FormLedger::kReadingSecondsPerByte;
  Ledger ledger;
  ledger.reading_per_byte = 100 * kReadingPerByte;
  ledger.tries(5, 0).gives(3, std::nullopt, 1).gives(3, Keep::kOutput, 1);
  CHECK(ledger.table(0).none_seconds == Approx(0.8 * kMillisecond + kUsual * kFromFile.bytes));
  CHECK(ledger.cost(Keep::kTranscoded)->seconds == Approx(0.3 * kMillisecond + kUsual * kCoefficients.bytes));
  CHECK(ledger.cost(Keep::kOutput)->seconds == Approx(0.1 * kMillisecond + kUsual * kOutput.bytes));
}

TEST_CASE("nothing tried is a table without forms") {
  const FormTable table = Ledger().gives(50, std::nullopt, 1).table(1);
  for (const auto& form : table.forms) CHECK_FALSE(form.has_value());
  CHECK(choose_form(table).form == Keep::kSource);
}

TEST_CASE("of a source that is slow for some files, those are what its form keeps") {
  const Ledger ledger = Ledger().tries(10, 20 * kMillisecond).tries(30, 0).gives(1, std::nullopt);
  CHECK(ledger.table(0).none_seconds == Approx(0.82 * kMillisecond + 5 * kMillisecond));
  const auto source = ledger.cost(Keep::kSource);
  REQUIRE(source.has_value());
  CHECK(source->bytes == Approx(25e3));
  CHECK(source->seconds == Approx(0.82 * kMillisecond));
  CHECK(source->making_seconds == Approx(0.25 * 0.04 * kMillisecond));
}

TEST_CASE("files without a form are kept and read as they are") {
  const Ledger ledger = Ledger().tries(10, 0).tries(10, 0, false, false).gives(1, std::nullopt);
  const auto coefficients = ledger.cost(Keep::kTranscoded);
  REQUIRE(coefficients.has_value());
  CHECK(coefficients->seconds == Approx(0.5 * (0.34 + 0.82) * kMillisecond));
  CHECK(coefficients->bytes == Approx(100e3));
  CHECK_FALSE(Ledger().tries(10, 0, false).cost(Keep::kTranscoded).has_value());
  CHECK_FALSE(Ledger().tries(10, 0, true, false).cost(Keep::kOutput).has_value());
}

TEST_CASE("bytes that the page cache cannot hold take a disk's time") {
  const double per_byte = FormLedger::kDiskSecondsPerByte;
  const Ledger ledger = Ledger(1000, 160'000'000).tries(5, 0).gives(1, std::nullopt);  // room for files and outputs
  CHECK(ledger.table(0).none_seconds == Approx(0.82 * kMillisecond));
  CHECK(ledger.cost(Keep::kOutput)->seconds == Approx(0.13 * kMillisecond));
  CHECK(ledger.cost(Keep::kTranscoded)->seconds == Approx(0.34 * kMillisecond + 200e3 * per_byte));
  CHECK(Ledger(1000, 0).tries(5, 0).gives(1, std::nullopt).table(0).none_seconds ==
        Approx(0.82 * kMillisecond + 100e3 * per_byte));
}

TEST_CASE("samples tell what is stored, and how slow the source and the cache's disk have become") {
  Ledger ledger;
  ledger.tries(5, 0).gives(30, Keep::kTranscoded).gives(70, std::nullopt);
  CHECK(ledger.is_round_over());
  ledger.begin_round();
  CHECK_FALSE(ledger.is_round_over());
  CHECK(ledger.cost(Keep::kTranscoded)->stored == Approx(0.3));
  CHECK(ledger.cost(Keep::kOutput)->stored == 0);

  ledger.gives(100, Keep::kTranscoded, 8 * kMillisecond).begin_round();
  CHECK(ledger.cost(Keep::kTranscoded)->stored == Approx(1));
  CHECK(ledger.cost(Keep::kTranscoded)->seconds == Approx(8.34 * kMillisecond));
  CHECK(choose_form(ledger.table(0)).form != Keep::kTranscoded);

  ledger.gives(100, std::nullopt, 20 * kMillisecond).begin_round();
  CHECK(ledger.table(0).none_seconds == Approx(20.82 * kMillisecond));
  CHECK(ledger.cost(Keep::kTranscoded)->stored == Approx(1));  // it was not looked for
  CHECK(choose_form(ledger.table(0)).form == Keep::kTranscoded);
}

TEST_CASE("where few reads wait, neither source nor records count as slow") {
  Ledger ledger(1000);
  for (const auto& [slow, fallback] : {std::pair{10u, Keep::kNothing}, {11u, Keep::kSource}, {50u, Keep::kSource}}) {
    ledger.tries(5, 0).gives(1000 - slow, std::nullopt).gives(slow, std::nullopt, 1).begin_round();
    CHECK_FALSE(ledger.cost(Keep::kSource).has_value());
    CHECK(ledger.table(0).none_seconds == Approx(0.82 * kMillisecond));
    CHECK(ledger.table(0).without_gain == fallback);
  }
  ledger.gives(949, std::nullopt).gives(51, std::nullopt, 1).begin_round();
  CHECK(ledger.cost(Keep::kSource)->bytes == Approx(0.051 * 100e3));
  CHECK(ledger.table(0).none_seconds > 51 * kMillisecond);
  ledger.gives(950, Keep::kTranscoded).gives(50, Keep::kTranscoded, 1).begin_round();
  CHECK(ledger.cost(Keep::kTranscoded)->seconds == Approx(0.34 * kMillisecond));
}

TEST_CASE("a long epoch is looked at in parts") {
  Ledger ledger(1'000'000);
  ledger.gives(FormLedger::kRoundMost - 1, std::nullopt);
  CHECK_FALSE(ledger.is_round_over());
  CHECK(ledger.gives(1, std::nullopt).is_round_over());
}

TEST_CASE("a few reads tell nothing of a disk") {
  Ledger ledger(1000);
  ledger.tries(5, 0).gives(63, Keep::kOutput, 1).gives(937, std::nullopt).begin_round();
  CHECK(ledger.cost(Keep::kOutput)->seconds == Approx(0.13 * kMillisecond));
  ledger.gives(64, Keep::kOutput, 1).gives(936, std::nullopt).begin_round();
  CHECK(ledger.cost(Keep::kOutput)->seconds > 1);
}

TEST_CASE("a job is expected to go on for as long as it has gone, and for two epochs at least") {
  Ledger ledger;
  ledger.tries(5, 0);
  for (const double epochs : {2, 2, 3, 4, 5}) {
    ledger.gives(100, std::nullopt).begin_round();
    CHECK(ledger.table(0).epochs == epochs);
  }
}

}  // namespace
}  // namespace sluice::cache
