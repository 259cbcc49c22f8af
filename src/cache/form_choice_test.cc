#include "src/cache/form_choice.h"

#include <algorithm>
#include <random>
#include <vector>

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

constexpr double kMilli = 1e-3;
constexpr double kKilobyte = 1e3;
constexpr double kSamples = 1000;

// Of 1,000 photographs of 80 KB that take a millisecond to make.
struct Photographs {
  double wait = 0;  // for the source
  double epochs = 2;
  double room = 1e12;

  FormTable table() const {
    FormTable table{kSamples, epochs, room, wait + 1 * kMilli, {}};
    if (wait > 0) table.forms[0] = FormCost{1.05 * kMilli, 80 * kKilobyte, 0.1 * kMilli, 0};
    table.forms[1] = FormCost{0.6 * kMilli, 160 * kKilobyte, 0.75 * kMilli, 0};
    return table;
  }
  FormTable with_prefix(const FormCost& prefix) const {
    FormTable all = table();
    all.forms[2] = prefix;
    return all;
  }
};

constexpr FormCost kFinished{0.1 * kMilli, 150 * kKilobyte, 0.3 * kMilli, 0};
constexpr FormCost kResized{0.4 * kMilli, 265 * kKilobyte, 1.2 * kMilli, 0};

TEST_CASE("the form that saves most within the room is chosen, or two for parts of the samples") {
  struct Case {
    const char* story;
    FormTable table;
    Keep form;
    Keep rest;
    double share;
  };
  const double slow = 20 * kMilli;
  for (const Case& c : {
           Case{"nothing is slow, and two epochs do not repay the making", Photographs{}.table(), Keep::kNothing,
                Keep::kNothing, 1},
           Case{"three epochs do", Photographs{.epochs = 3}.table(), Keep::kTranscoded, Keep::kTranscoded, 1},
           Case{"finished samples repay at once", Photographs{}.with_prefix(kFinished), Keep::kOutput, Keep::kOutput,
                1},
           Case{"resized images are dear to make", Photographs{}.with_prefix(kResized), Keep::kNothing, Keep::kNothing,
                1},
           Case{"a slow source", Photographs{.wait = slow}.table(), Keep::kSource, Keep::kSource, 1},
           Case{"a slow source and a long job", Photographs{.wait = slow, .epochs = 9}.table(), Keep::kTranscoded,
                Keep::kTranscoded, 1},
           Case{"a slow source, and room for its bytes alone",
                Photographs{.wait = slow, .epochs = 9, .room = 100e6}.table(), Keep::kSource, Keep::kSource, 1},
           Case{"a slow source, and some room beyond its bytes",
                Photographs{.wait = slow, .epochs = 9, .room = 150e6}.table(), Keep::kTranscoded, Keep::kSource, 0.5},
           Case{"room for some of the finished samples", Photographs{.room = 20e6}.with_prefix(kFinished),
                Keep::kOutput, Keep::kOutput, 1},
           Case{"no room yet", Photographs{.room = 0}.with_prefix(kFinished), Keep::kOutput, Keep::kOutput, 1},
       }) {
    INFO(c.story);
    const FormChoice choice = choose_form(c.table);
    CHECK(name_of(choice.form) == name_of(c.form));
    CHECK(name_of(choice.rest) == name_of(c.rest));
    CHECK(choice.share == Approx(c.share));
  }
}

TEST_CASE("what is kept already is used, and is given up for what saves more over the rest of the job only") {
  FormTable table = Photographs{}.table();
  table.forms[1]->stored = 1;
  const auto is_kept = [&](double seconds_saved) {
    const FormChoice choice = choose_form(table);
    CHECK(choice.form == Keep::kTranscoded);
    CHECK(choice.rest == Keep::kTranscoded);
    CHECK(choice.bytes == 0);
    CHECK(choice.seconds_saved == Approx(seconds_saved));
  };
  is_kept(0.4);
  table.room_bytes = 0;
  table.forms[1]->stored = 0.5;
  is_kept(0.2);
  // Half of it is worth less than a finished sample for each, and more than those for a tenth of the samples.
  table.forms[2] = kFinished;
  table.room_bytes = 1e12;
  CHECK(choose_form(table).form == Keep::kOutput);
  table.room_bytes = 0.1 * kSamples * kFinished.bytes * kRoomForErrors;
  const FormChoice mixed = choose_form(table);
  CHECK(mixed.form == Keep::kOutput);
  CHECK(mixed.rest == Keep::kTranscoded);
  CHECK(mixed.share == Approx(0.1));
  CHECK(mixed.seconds_saved == Approx(0.1 * 0.9 + 0.9 * 0.2));
}

TEST_CASE("where no form gains, it is as the table says") {
  FormTable table = Photographs{}.table();
  table.without_gain = Keep::kSource;
  CHECK(choose_form(table).form == Keep::kSource);
  CHECK(choose_form(table).rest == Keep::kSource);
  table.epochs = 3;
  CHECK(choose_form(table).form == Keep::kTranscoded);
}

TEST_CASE("what it is expected to save and to need is that of the share that fits") {
  const FormChoice all = choose_form(Photographs{}.with_prefix(kFinished));
  CHECK(all.seconds_saved == Approx(0.9));
  CHECK(all.bytes == Approx(150e6));
  const FormChoice half = choose_form(Photographs{.room = 75e6 * kRoomForErrors}.with_prefix(kFinished));
  CHECK(half.seconds_saved == Approx(0.45));
  CHECK(half.bytes == Approx(75e6));
}

// ---- against exhaustive search ----

struct Point {
  double bytes = 0;
  double gain = 0;
};

Point kept(const FormTable& table, const FormCost& form) {
  return {0, table.epochs * table.samples * form.stored * (table.none_seconds - form.seconds)};
}

Point full(const FormTable& table, const FormCost& form) {
  const double missing = table.samples * (1 - form.stored);
  return {kRoomForErrors * missing * form.bytes,
          table.epochs * table.samples * (table.none_seconds - form.seconds) - kRepaid * missing * form.making_seconds};
}

// What the two give together where the second has so much of the samples as it can; nothing if they do not fit.
double best_mix(const Point& one, const Point& other, double room) {
  double best = -1e300;
  const auto consider = [&](double share) {
    if (share < 0 || share > 1) return;
    if ((1 - share) * one.bytes + share * other.bytes > room * (1 + 1e-12)) return;
    best = std::max(best, (1 - share) * one.gain + share * other.gain);
  };
  for (int step = 0; step <= 100; ++step) consider(step / 100.0);
  if (one.bytes != other.bytes) consider((room - one.bytes) / (other.bytes - one.bytes));
  return best;
}

double exhaustive(const FormTable& table) {
  std::vector<Point> points{Point{}};
  for (const auto& form : table.forms) {
    if (!form) continue;
    points.push_back(kept(table, *form));
    points.push_back(full(table, *form));
  }
  double best = 0;
  for (const Point& one : points)
    for (const Point& other : points) best = std::max(best, best_mix(one, other, table.room_bytes));
  return best;
}

// Of what was chosen, when as much as fits is kept.
double gain_of(const FormChoice& choice, const FormTable& table) {
  if (choice.form == Keep::kNothing) return 0;
  const auto& form = table.forms[static_cast<std::size_t>(choice.form)];
  const auto& rest = table.forms[static_cast<std::size_t>(choice.rest)];
  if (choice.form == choice.rest)
    return std::max(0.0, best_mix(kept(table, *form), full(table, *form), table.room_bytes));
  double best = -1e300;
  for (const Point& lower : {kept(table, *rest), full(table, *rest)}) {
    const Point upper = full(table, *form);
    const double bytes = choice.share * upper.bytes + (1 - choice.share) * lower.bytes;
    if (bytes <= table.room_bytes * (1 + 1e-9) + 1e-6)
      best = std::max(best, choice.share * upper.gain + (1 - choice.share) * lower.gain);
  }
  return best;
}

// A second form for less than a hundredth of the samples is not taken.
double not_taken(const FormTable& table) {
  double most = 0;
  for (const auto& form : table.forms)
    if (form) most = std::max(most, full(table, *form).gain);
  return 0.01 * most;
}

FormTable random_table(std::mt19937& random) {
  const auto between = [&](double least, double most) { return std::uniform_real_distribution(least, most)(random); };
  FormTable table{between(1, 1000), between(1, 20), between(0, 1) < 0.1 ? 0 : between(0, 3e8), between(0, 0.02), {}};
  for (auto& form : table.forms) {
    if (between(0, 1) < 0.25) continue;
    const double stored = between(0, 1);
    form = FormCost{between(0, 1.2) * table.none_seconds, between(0, 3e5), between(0, 1.5) * table.none_seconds,
                    stored < 0.5   ? 0
                    : stored > 0.9 ? 1
                                   : stored};
  }
  return table;
}

TEST_CASE("the choice is as good as exhaustive search over all pairs of forms and shares") {
  std::mt19937 random(17);
  for (int i = 0; i < 5000; ++i) {
    const FormTable table = random_table(random);
    INFO("case " << i);
    CHECK(gain_of(choose_form(table), table) >= exhaustive(table) - not_taken(table) - 1e-9);
  }
}

TEST_CASE("more room never gains less") {
  std::mt19937 random(18);
  for (int i = 0; i < 1000; ++i) {
    FormTable table = random_table(random);
    double before = 0;
    for (table.room_bytes = 0; table.room_bytes < 3e8; table.room_bytes += 3e7) {
      const double gain = gain_of(choose_form(table), table);
      CHECK(gain >= before - not_taken(table) - 1e-9);
      before = gain;
    }
  }
}

TEST_CASE("a choice is made again when a figure has changed by half, and not for noise or for its own records") {
  const FormTable table = Photographs{.wait = 10 * kMilli, .room = 1e9}.table();
  const auto changed = [&](auto change) {
    FormTable now = table;
    change(now);
    return has_changed(table, now);
  };
  CHECK_FALSE(changed([](FormTable&) {}));
  CHECK_FALSE(changed([](FormTable& now) { now.none_seconds *= 1.4; }));
  CHECK(changed([](FormTable& now) { now.none_seconds *= 1.6; }));
  CHECK(changed([](FormTable& now) { now.epochs = 3; }));
  CHECK_FALSE(changed([](FormTable& now) { now.forms[1]->seconds *= 1.4; }));
  CHECK(changed([](FormTable& now) { now.forms[1]->seconds /= 1.6; }));
  CHECK(changed([](FormTable& now) { now.forms[0].reset(); }));
  CHECK_FALSE(changed([](FormTable& now) {
    now.room_bytes /= 10;
    now.forms[1]->stored = 1;
  }));
  CHECK(changed([](FormTable& now) { now.room_bytes *= 2; }));
  CHECK(changed([](FormTable& now) { now.without_gain = Keep::kSource; }));
}

}  // namespace
}  // namespace sluice::cache
