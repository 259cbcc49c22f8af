// Which form of its files a pipeline should keep on disk: a multiple-choice knapsack of one data set.
//
// For each form the table says what a sample takes that is made from it, and what it takes to keep it. The seconds are
// those of a thread: CPU and wait count the same, as a thread that waits for a read makes no sample meanwhile. A form
// gains, over the rest of the job,
//   epochs * samples * (seconds without it - seconds with it) - kRepaid * samples * (seconds to make what is missing)
// and needs the bytes of what is missing. A part of the samples gains that part of it, so the best for a number of
// bytes lies on the upper convex hull of the points (bytes, gain): one form, or two that are neighbours on the hull and
// share the samples. Thread safety: pure functions and values.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace sluice::cache {

// What is kept of files. kAutomatic: what choose_form() says for each pipeline. kNothing: they are read from their
// source.
enum class Keep { kSource, kTranscoded, kOutput, kAutomatic, kNothing };
inline constexpr std::array kForms{Keep::kSource, Keep::kTranscoded, Keep::kOutput};

// As SLUICE_CACHE_FORM and the metrics have it.
std::string_view name_of(Keep keep);

// Of a sample, on average over all. Where some cannot have the form, their part of it costs as without a cache.
struct FormCost {
  double seconds = 0;         // to read the form and make the sample of it
  double bytes = 0;           // of the record
  double making_seconds = 0;  // to make the record and to store it, once
  double stored = 0;          // the share of the samples that have a record, 0 to 1
};

struct FormTable {
  double samples = 0;
  double epochs = 0;                                         // still to come
  double room_bytes = 0;                                     // free
  double none_seconds = 0;                                   // to read a file from its source and make the sample
  std::array<std::optional<FormCost>, kForms.size()> forms;  // none: the form is not possible, or keeps nothing
  Keep without_gain = Keep::kNothing;                        // what is chosen if no form gains anything
};

struct FormChoice {
  Keep form = Keep::kNothing;
  Keep rest = Keep::kNothing;  // of the samples beyond `share`; where it is `form`, so much is kept as fits
  double share = 1;
  double seconds_saved = 0;  // of an epoch, once all of it is kept
  double bytes = 0;          // that it adds to the disk
};

// A form is made only if the rest of the job saves so many times what the making costs: the costs are estimates.
inline constexpr double kRepaid = 1.5;
// A form needs so many times the bytes of the table. Some dozen files tell the mean of photographs within a quarter,
// and two forms that do not fit as they were to are worse than one.
inline constexpr double kRoomForErrors = 1.25;

// A form that gains is chosen without room for it, too: the store may find some.
FormChoice choose_form(const FormTable& table);

// Whether a figure is so far from what it was that the choice should be made again.
bool has_changed(const FormTable& before, const FormTable& now);

}  // namespace sluice::cache
