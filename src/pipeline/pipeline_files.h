// What reads the files of one pipeline and learns what its samples take from each form of their files, so that it can
// choose one.
//
// After read_image() and the making of the sample comes note(), on the same thread. Where that asks for a trial, the
// pipeline makes the sample from each form once more, for the measurement alone, and note_trial() follows.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <optional>
#include <vector>

#include "src/pipeline/file_reader.h"

namespace sluice::pipeline {

// Of one sample. Seconds are the thread's CPU.
struct TrialOfForm {
  std::vector<std::uint8_t> bytes;  // what would be kept
  double making_seconds = 0;        // that the sample takes more where these are made of the file's bytes on the way
  double seconds = 0;               // to make the sample of these
};

struct SampleTrial {
  double wait_seconds = 0;                  // for the file's source, as ImageContent's
  TrialOfForm file;                         // its own bytes, which nothing makes
  std::optional<TrialOfForm> coefficients;  // none: the file has none that are worth keeping
  std::optional<TrialOfForm> output;        // none: the pipeline has no prefix that is worth it
};

class PipelineFiles : public FileReader {
 public:
  // `seconds`: of the clock, to read and make the sample. True: try it, and call note_trial().
  virtual bool note(const ImageContent& content, double seconds) const = 0;

  // nullopt: it could not be tried. `seconds`: of the clock, that the trial took.
  virtual void note_trial(const std::optional<SampleTrial>& trial, double seconds) const = 0;

  // Reads a file for a trial, as if nothing was kept. The seconds of wait, as ImageContent's.
  virtual Result<double> read_source(const FilePart& part, std::vector<std::uint8_t>& bytes) const = 0;
};

}  // namespace sluice::pipeline
