// What the samples of one pipeline take, by the form of the file that they are made from.
//
// Some samples are tried: made from each form, so that the forms are compared on the same files. These few may be
// dearer or larger than usual. So the mean of all samples that are made of files scales the figures of every form.
// Samples tell how long they waited for what they were read from: the source may become slow, and so may the cache's
// disk. Those that did not wait tell the CPU of reading. Each byte of a record takes what the records of that form have
// taken; before there were any, what a fast source has taken, or kReadingSecondsPerByte. Where all of a form is more
// than the page cache holds, each byte of it takes kDiskSecondsPerByte on top.
// Of the job's length nothing is known. It is expected to have as many epochs more as it has had, and kEpochsMin at
// least, so that a form whose making is dear is made once a job has shown that it goes on.
// Thread safety: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "src/cache/form_choice.h"

namespace sluice::cache {

// Of one sample from one form, measured; CPU.
struct TriedForm {
  double bytes = 0;
  double making_seconds = 0;  // that a sample takes more for it when it is made from the file
  double seconds = 0;         // to make the sample of its bytes
};

struct Trial {
  double wait_seconds = 0;    // for the source, as MadeSample's
  double asking_seconds = 0;  // that a question to the cache takes, beside the bytes of its answer
  TriedForm file;             // its own bytes, which nothing makes
  std::optional<TriedForm> coefficients;
  std::optional<TriedForm> output;
};

// A sample that a loop got.
struct MadeSample {
  std::optional<Keep> from;                   // the form of the record; none: the source
  double wait_seconds = 0;                    // for what it was read from; 0 where that is as fast as a local disk
  double reading_seconds = 0;                 // CPU
  double bytes = 0;                           // that were read
  std::optional<double> making_seconds = {};  // CPU; none: it was not made of a file's bytes, or its form was, beside
};

class FormLedger {
 public:
  static constexpr double kEpochsMin = 2;
  static constexpr double kDiskSecondsPerByte = 2e-9;
  static constexpr double kReadingSecondsPerByte = 0.3e-9;  // measured with records of 80 to 270 KB, at 2.5 GHz
  static constexpr std::size_t kRoundMost = 4096;
  // Of fewer the mean is no better than that of the samples that were tried.
  static constexpr std::size_t kMadeMin = 64;
  static constexpr std::size_t kWaitsMin = 64;  // fewer of a round say nothing, unless an epoch has no more samples
  // If fewer of the reads wait, it is no matter of the files, but of a thread that waited for its CPU.
  static constexpr double kSlowMin = 0.05;
  // If more than so many do, and no form gains, the bytes of those that wait are kept nevertheless.
  static constexpr double kSometimesSlow = 0.01;

  FormLedger(std::size_t samples, std::uint64_t page_cache_bytes)
      : samples_(samples), page_cache_bytes_(page_cache_bytes) {}

  void note(const MadeSample& sample);
  void note_trial(const Trial& trial);

  // Whether an epoch, or kRoundMost samples of it, were noted since the last begin_round().
  bool is_round_over() const { return noted_ >= std::min(samples_, kRoundMost); }
  // Takes over what those tell that have been noted, and begins anew.
  void begin_round();

  FormTable table(std::uint64_t room_bytes) const;

 private:
  struct Waits {
    std::size_t count = 0;
    std::size_t slow = 0;
    double seconds = 0;

    void add(double wait_seconds);
    bool are_above(double share) const { return static_cast<double>(slow) > share * static_cast<double>(count); }
    bool are_noise() const { return !are_above(kSlowMin); }
    double share_of_slow() const { return are_noise() ? 0 : static_cast<double>(slow) / static_cast<double>(count); }
    double mean_seconds() const { return are_noise() ? 0 : seconds / static_cast<double>(count); }
  };
  // CPU of the reads so far that did not wait. One that has slept finds the processor's caches cold.
  struct Reading {
    double seconds = 0;
    double bytes = 0;

    void add(const MadeSample& sample);
    std::optional<double> seconds_per_byte() const;
  };
  // Sums over the trials whose file has the form.
  struct Tried {
    std::size_t count = 0;
    TriedForm sum;

    void add(const TriedForm& form);
    double mean(double TriedForm::*figure) const { return count == 0 ? 0 : sum.*figure / static_cast<double>(count); }
  };
  using ByForm = std::array<Tried, kForms.size()>;

  // Of the tried samples, as all samples would have it.
  double mean(const Tried& tried, double TriedForm::*figure) const;
  double disk_seconds(double bytes) const;
  // CPU to read so many bytes of the source, or of a record.
  double source_reading_seconds(double bytes) const;
  double record_reading_seconds(Keep form, double bytes) const;
  FormCost source_cost() const;
  std::optional<FormCost> cost_of(Keep form) const;

  const std::size_t samples_;
  const std::uint64_t page_cache_bytes_;
  double asking_seconds_ = 0;
  ByForm tried_;
  std::size_t made_ = 0;  // of files' bytes
  double made_seconds_ = 0;
  double made_bytes_ = 0;
  Reading source_reading_;
  std::array<Reading, kForms.size()> record_reading_;
  Waits source_waits_;  // of the trials, later of a round
  std::array<Waits, kForms.size()> record_waits_;
  std::array<double, kForms.size()> stored_{};
  std::size_t noted_before_ = 0;
  std::size_t noted_ = 0;  // since begin_round(), as all below
  Waits source_now_;
  std::array<Waits, kForms.size()> records_now_;
};

}  // namespace sluice::cache
