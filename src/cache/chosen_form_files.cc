#include "src/cache/chosen_form_files.h"

#include <cstdio>
#include <limits>

#include "src/base/checksum.h"
#include "src/base/logging.h"

namespace sluice::cache {
namespace {

using pipeline::FileForm;
using pipeline::FilePart;
using pipeline::ImageContent;
using pipeline::Prefix;

// A number from 0 to 1, the same in each epoch and each process.
double place_of(const FilePart& part) {
  const std::string name = part.name();
  const std::uint64_t hash = checksum({reinterpret_cast<const std::uint8_t*>(name.data()), name.size()});
  return static_cast<double>(hash) / static_cast<double>(std::numeric_limits<std::uint64_t>::max());
}

std::optional<Keep> record_of(const ImageContent& content) {
  if (content.is_of_source) return std::nullopt;
  switch (content.form) {
    case FileForm::kFile: return Keep::kSource;
    case FileForm::kCoefficients: return Keep::kTranscoded;
    case FileForm::kOutput: return Keep::kOutput;
  }
  return std::nullopt;
}

TriedForm tried(const pipeline::TrialOfForm& form) {
  return {static_cast<double>(form.bytes.size()), form.making_seconds, form.seconds};
}

Trial measured(const pipeline::SampleTrial& sample, double asking_seconds) {
  Trial trial{sample.wait_seconds, asking_seconds, tried(sample.file), {}, {}};
  if (sample.coefficients) trial.coefficients = tried(*sample.coefficients);
  if (sample.output) trial.output = tried(*sample.output);
  return trial;
}

MadeSample made_sample(const ImageContent& content) {
  MadeSample sample{
      record_of(content), content.wait_seconds, content.reading_seconds, static_cast<double>(content.bytes), {}};
  const bool is_of_file_alone = content.form == FileForm::kFile && !content.wants_output_of;
  if (is_of_file_alone && content.making_seconds > 0) sample.making_seconds = content.making_seconds;
  return sample;
}

// Of the pipelines that are so far.
Count& pipelines_of(const std::optional<FormChoice>& choice, Counters& counters) {
  if (!choice) return counters.undecided_pipelines;
  switch (choice->form) {
    case Keep::kSource: return counters.source.pipelines;
    case Keep::kTranscoded: return counters.coefficients.pipelines;
    case Keep::kOutput: return counters.outputs.pipelines;
    default: return counters.uncached_pipelines;
  }
}

std::string in_words(Keep form) {
  switch (form) {
    case Keep::kTranscoded: return "their coefficients";
    case Keep::kOutput: return "what the transforms before the first random one make of them";
    case Keep::kSource: return "their bytes where they are slow to read";
    default: return "nothing, as no form would save enough";
  }
}

std::string with_digits(const char* format, double number) {
  char text[32];
  std::snprintf(text, sizeof(text), format, number);
  return text;
}

void say(const FormChoice& choice, const FormTable& table) {
  const std::string share = with_digits("%.0f %%", 100 * choice.share);
  const std::string words = choice.form == choice.rest
                                ? "of the files of a pipeline it keeps " + in_words(choice.form)
                                : "of " + share + " of the files of a pipeline it keeps " + in_words(choice.form) +
                                      ", of the others " + in_words(choice.rest);
  log_info("cache", words,
           {{"samples", static_cast<std::uint64_t>(table.samples)},
            {"saves_seconds_per_epoch", with_digits("%.3g", choice.seconds_saved)},
            {"of_seconds", with_digits("%.3g", table.samples * table.none_seconds)},
            {"adds_bytes", static_cast<std::uint64_t>(choice.bytes)}});
}

}  // namespace

ChosenFormFiles::ChosenFormFiles(const CachedFiles& files, std::size_t samples)
    : files_(files), ledger_(samples, files.page_cache_bytes()) {
  ++files_.counters_of_choices().undecided_pipelines;
}

ChosenFormFiles::~ChosenFormFiles() { --pipelines_of(choice_, files_.counters_of_choices()); }

Result<void> ChosenFormFiles::read(const FilePart& part, std::vector<std::uint8_t>& bytes) const {
  return files_.read(part, bytes);
}

Result<ImageContent> ChosenFormFiles::read_image(const FilePart& part, const Prefix& prefix,
                                                 std::vector<std::uint8_t>& bytes) const {
  return files_.read_image_as(keep_of(part), part, prefix, bytes);
}

Keep ChosenFormFiles::keep_of(const FilePart& part) const {
  const auto chosen = choice();
  if (!chosen) return Keep::kAutomatic;
  return chosen->form == chosen->rest || place_of(part) < chosen->share ? chosen->form : chosen->rest;
}

void ChosenFormFiles::announce(const PartOf& part, const pipeline::Prefix& prefix, const EpochOrder& order) const {
  files_.announce_as([this](const FilePart& file) { return keep_of(file); }, part, prefix, order);
}

std::shared_ptr<pipeline::ReadAhead> ChosenFormFiles::read_ahead(const PartOf& part, std::size_t parts,
                                                                 const Prefix& prefix) const {
  return files_.read_ahead_as([this](const FilePart& file) { return keep_of(file); }, part, parts, prefix);
}

bool ChosenFormFiles::has_room_for_output(const FilePart& part, const Prefix& prefix,
                                          const pipeline::FileIdentity& state, std::size_t bytes) const {
  return files_.has_room_for_output(part, prefix, state, bytes);
}

void ChosenFormFiles::keep_output(const FilePart& part, const Prefix& prefix, const pipeline::FileIdentity& state,
                                  std::span<const std::uint8_t> output) const {
  files_.keep_output(part, prefix, state, output);
}

Result<double> ChosenFormFiles::read_source(const FilePart& part, std::vector<std::uint8_t>& bytes) const {
  SLUICE_TRY(const Clock::Duration took, files_.read_source(part, bytes));
  return CachedFiles::wait_seconds(took, bytes.size());
}

bool ChosenFormFiles::note(const ImageContent& content, double seconds) const {
  if (!files_.is_in_use()) return false;
  std::lock_guard lock(mutex_);
  ledger_.note(made_sample(content));
  if (choice_) {
    if (!ledger_.is_round_over()) return false;
    ledger_.begin_round();
    if (has_changed(table_, ledger_.table(files_.free_bytes()))) choose();
    return false;
  }
  seconds_ += seconds;
  if (is_trying_ || kSecondsPerTrialSecond * trial_seconds_ > seconds_) return false;
  is_trying_ = true;
  return true;
}

void ChosenFormFiles::note_trial(const std::optional<pipeline::SampleTrial>& trial, double seconds) const {
  ++files_.counters_of_choices().trials;
  std::optional<Trial> costs;
  if (trial) costs = measured(*trial, files_.asking_seconds());
  std::lock_guard lock(mutex_);
  is_trying_ = false;
  trial_seconds_ += seconds;
  if (costs) ledger_.note_trial(*costs);
  if (++trials_ < kTrials) return;
  ledger_.begin_round();
  choose();
}

std::optional<FormChoice> ChosenFormFiles::choice() const {
  std::lock_guard lock(mutex_);
  return choice_;
}

FormTable ChosenFormFiles::table() const {
  std::lock_guard lock(mutex_);
  return ledger_.table(files_.free_bytes());
}

void ChosenFormFiles::choose() const {
  table_ = ledger_.table(files_.free_bytes());
  const FormChoice chosen = choose_form(table_);
  const bool is_news = !choice_ || choice_->form != chosen.form || choice_->rest != chosen.rest;
  --pipelines_of(choice_, files_.counters_of_choices());
  choice_ = chosen;
  ++pipelines_of(choice_, files_.counters_of_choices());
  if (is_news) say(chosen, table_);
}

}  // namespace sluice::cache
