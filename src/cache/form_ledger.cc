#include "src/cache/form_ledger.h"

#include <algorithm>

namespace sluice::cache {
namespace {

constexpr std::size_t index_of(Keep form) { return static_cast<std::size_t>(form); }

// Storing copies and checks the bytes once more than reading.
constexpr double kStoringPerReading = 2;

}  // namespace

void FormLedger::Waits::add(double wait_seconds) {
  ++count;
  if (wait_seconds > 0) ++slow;
  seconds += wait_seconds;
}

void FormLedger::Reading::add(const MadeSample& sample) {
  if (sample.wait_seconds > 0) return;
  seconds += sample.reading_seconds;
  bytes += sample.bytes;
}

std::optional<double> FormLedger::Reading::seconds_per_byte() const {
  return bytes == 0 ? std::nullopt : std::optional(seconds / bytes);
}

void FormLedger::Tried::add(const TriedForm& form) {
  ++count;
  for (double TriedForm::*figure : {&TriedForm::bytes, &TriedForm::making_seconds, &TriedForm::seconds})
    sum.*figure += form.*figure;
}

void FormLedger::note(const MadeSample& sample) {
  ++noted_;
  (sample.from ? records_now_[index_of(*sample.from)] : source_now_).add(sample.wait_seconds);
  (sample.from ? record_reading_[index_of(*sample.from)] : source_reading_).add(sample);
  if (!sample.making_seconds) return;
  ++made_;
  made_seconds_ += *sample.making_seconds;
  made_bytes_ += sample.bytes;
}

void FormLedger::note_trial(const Trial& trial) {
  source_waits_.add(trial.wait_seconds);
  asking_seconds_ += trial.asking_seconds;
  tried_[index_of(Keep::kSource)].add(trial.file);
  if (trial.coefficients) tried_[index_of(Keep::kTranscoded)].add(*trial.coefficients);
  if (trial.output) tried_[index_of(Keep::kOutput)].add(*trial.output);
}

void FormLedger::begin_round() {
  const std::size_t enough = std::min(kWaitsMin, samples_);
  if (source_now_.count >= enough) source_waits_ = source_now_;
  for (const Keep form : kForms) {
    const Waits& now = records_now_[index_of(form)];
    if (now.count >= enough) record_waits_[index_of(form)] = now;
    // Of a form that is not looked for, nothing new is known.
    if (now.count > 0) stored_[index_of(form)] = static_cast<double>(now.count) / static_cast<double>(noted_);
  }
  noted_before_ += noted_;
  noted_ = 0;
  source_now_ = {};
  records_now_ = {};
}

double FormLedger::mean(const Tried& tried, double TriedForm::*figure) const {
  const Tried& file = tried_[index_of(Keep::kSource)];
  const double all = figure == &TriedForm::bytes ? made_bytes_ : made_seconds_;
  const double of_files = file.mean(figure == &TriedForm::bytes ? &TriedForm::bytes : &TriedForm::seconds);
  if (made_ < std::min(kMadeMin, samples_) || of_files == 0) return tried.mean(figure);
  return tried.mean(figure) * all / static_cast<double>(made_) / of_files;
}

double FormLedger::disk_seconds(double bytes) const {
  const bool fits = bytes * static_cast<double>(samples_) <= static_cast<double>(page_cache_bytes_);
  return fits ? 0 : kDiskSecondsPerByte * bytes;
}

double FormLedger::source_reading_seconds(double bytes) const {
  return source_reading_.seconds_per_byte().value_or(kReadingSecondsPerByte) * bytes;
}

double FormLedger::record_reading_seconds(Keep form, double bytes) const {
  const std::size_t trials = tried_[index_of(Keep::kSource)].count;
  const double asking_seconds = trials == 0 ? 0 : asking_seconds_ / static_cast<double>(trials);
  const auto per_byte = record_reading_[index_of(form)].seconds_per_byte();
  return asking_seconds + (per_byte ? *per_byte * bytes : source_reading_seconds(bytes));
}

// Its bytes are kept where they are slow to read; the others are read from their source.
FormCost FormLedger::source_cost() const {
  const Tried& file = tried_[index_of(Keep::kSource)];
  const double slow = source_waits_.share_of_slow();
  const double bytes = mean(file, &TriedForm::bytes);
  const double reading_seconds = record_reading_seconds(Keep::kSource, bytes);
  FormCost cost;
  cost.bytes = slow * bytes;
  cost.making_seconds = slow * kStoringPerReading * reading_seconds;
  cost.seconds = mean(file, &TriedForm::seconds) + slow * reading_seconds + (1 - slow) * source_reading_seconds(bytes) +
                 disk_seconds(bytes) + slow * record_waits_[index_of(Keep::kSource)].mean_seconds();
  return cost;
}

std::optional<FormCost> FormLedger::cost_of(Keep form) const {
  const Tried& tried = tried_[index_of(form)];
  if (tried.count == 0 || (form == Keep::kSource && source_waits_.are_noise())) return std::nullopt;
  FormCost cost = source_cost();
  if (form != Keep::kSource) {
    // The files that have no such form are kept as they are.
    const double possible =
        static_cast<double>(tried.count) / static_cast<double>(tried_[index_of(Keep::kSource)].count);
    const auto mixed = [&](double own, double other) { return possible * own + (1 - possible) * other; };
    const double bytes = mean(tried, &TriedForm::bytes);
    const double reading_seconds = record_reading_seconds(form, bytes);
    cost.making_seconds =
        mixed(mean(tried, &TriedForm::making_seconds) + kStoringPerReading * reading_seconds, cost.making_seconds);
    cost.seconds = mixed(mean(tried, &TriedForm::seconds) + reading_seconds + disk_seconds(bytes) +
                             record_waits_[index_of(form)].mean_seconds(),
                         cost.seconds);
    cost.bytes = mixed(bytes, cost.bytes);
  }
  cost.stored = std::min(1.0, stored_[index_of(form)]);
  return cost;
}

FormTable FormLedger::table(std::uint64_t room_bytes) const {
  FormTable table;
  table.samples = static_cast<double>(samples_);
  table.epochs = std::max(kEpochsMin, static_cast<double>(noted_before_) / static_cast<double>(samples_));
  table.room_bytes = static_cast<double>(room_bytes);
  const Tried& file = tried_[index_of(Keep::kSource)];
  if (file.count == 0 || source_waits_.are_above(kSometimesSlow)) table.without_gain = Keep::kSource;
  if (file.count == 0) return table;
  const double bytes = mean(file, &TriedForm::bytes);
  table.none_seconds = mean(file, &TriedForm::seconds) + source_reading_seconds(bytes) + source_waits_.mean_seconds() +
                       (1 - source_waits_.share_of_slow()) * disk_seconds(bytes);
  for (const Keep form : kForms) table.forms[index_of(form)] = cost_of(form);
  return table;
}

}  // namespace sluice::cache
