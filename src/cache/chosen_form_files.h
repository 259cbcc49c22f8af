// Reads the files of one pipeline in the form that pays most, by what its samples take (form_ledger.h, form_choice.h).
//
// Until kTrials samples have been tried, files come in whatever form they are kept, and the bytes of slow ones are
// stored. Trials take 1 / kSecondsPerTrialSecond of the time that samples take, so that a job is never much slower for
// them. Then the form is chosen, for all files or for a share of them: which files, a hash of their names says. The
// choice is looked at again after each epoch or FormLedger::kRoundMost samples, and made again if a figure of the table
// has changed much. Records of a form that is no longer chosen stay, and are not read. Whatever is chosen, and while it
// changes, samples are the same. Thread safety: as PipelineFiles'.
#pragma once

#include <mutex>
#include <optional>

#include "src/cache/cached_files.h"
#include "src/cache/form_ledger.h"
#include "src/pipeline/pipeline_files.h"

namespace sluice::cache {

class ChosenFormFiles final : public pipeline::PipelineFiles {
 public:
  static constexpr std::size_t kTrials = 24;
  static constexpr double kSecondsPerTrialSecond = 16;

  // REQUIRES: samples > 0; `files` outlives this
  ChosenFormFiles(const CachedFiles& files, std::size_t samples);
  ~ChosenFormFiles() override;

  Result<void> read(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const override;
  Result<pipeline::ImageContent> read_image(const pipeline::FilePart& part, const pipeline::Prefix& prefix,
                                            std::vector<std::uint8_t>& bytes) const override;
  bool has_room_for_output(const pipeline::FilePart& part, const pipeline::Prefix& prefix,
                           const pipeline::FileIdentity& state, std::size_t bytes) const override;
  void keep_output(const pipeline::FilePart& part, const pipeline::Prefix& prefix, const pipeline::FileIdentity& state,
                   std::span<const std::uint8_t> output) const override;
  Result<pipeline::FileIdentity> identify(const std::string& path) const override { return files_.identify(path); }

  std::shared_ptr<pipeline::ReadAhead> read_ahead(const PartOf& part, std::size_t parts,
                                                  const pipeline::Prefix& prefix) const override;

  bool note(const pipeline::ImageContent& content, double seconds) const override;
  void note_trial(const std::optional<pipeline::SampleTrial>& trial, double seconds) const override;
  Result<double> read_source(const pipeline::FilePart& part, std::vector<std::uint8_t>& bytes) const override;

  bool takes_orders() const override { return files_.takes_orders(); }
  void announce(const PartOf& part, const pipeline::Prefix& prefix, const EpochOrder& order) const override;

  // None: not chosen yet.
  std::optional<FormChoice> choice() const;
  // By which it is chosen, from what is known now.
  FormTable table() const;

 private:
  Keep keep_of(const pipeline::FilePart& part) const;
  void choose() const;  // REQUIRES: mutex_ is held

  const CachedFiles& files_;

  mutable std::mutex mutex_;
  mutable FormLedger ledger_;
  mutable std::optional<FormChoice> choice_;
  mutable FormTable table_;  // that it was made by
  mutable bool is_trying_ = false;
  mutable std::size_t trials_ = 0;
  mutable double seconds_ = 0;  // of all samples until the choice
  mutable double trial_seconds_ = 0;
};

}  // namespace sluice::cache
