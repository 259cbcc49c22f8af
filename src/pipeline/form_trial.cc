// How a native pipeline tries the forms of a sample's file: what each of them takes, for a reader that chooses.
#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "src/pipeline/jpeg_coefficients.h"
#include "src/pipeline/jpeg_decoder.h"
#include "src/pipeline/native_pipeline_state.h"
#include "src/pipeline/prefix_output.h"

namespace sluice::pipeline {
namespace {

// Takes the output of a prefix in place of a cache.
class CaughtOutput final : public FileReader {
 public:
  Result<void> read(const FilePart& part, std::vector<std::uint8_t>& /*bytes*/) const override {
    return not_found(part.name());  // it is never asked for bytes
  }
  Result<FileIdentity> identify(const std::string& path) const override { return not_found(path); }
  bool has_room_for_output(const FilePart& /*part*/, const Prefix& /*prefix*/, const FileIdentity& /*state*/,
                           std::size_t /*bytes*/) const override {
    return true;
  }
  void keep_output(const FilePart& /*part*/, const Prefix& /*prefix*/, const FileIdentity& /*state*/,
                   std::span<const std::uint8_t> output) const override {
    bytes.assign(output.begin(), output.end());
  }

  mutable std::vector<std::uint8_t> bytes;
};

// A trial holds a file in all its forms. Larger ones are not tried.
constexpr std::size_t kTrialBytesMax = kOutputBytesMax;

std::optional<TrialOfForm> transcode(std::span<const std::uint8_t> file) {
  const double started = thread_cpu_seconds();
  TrialOfForm made;
  JpegDecoder decoder;
  if (!decoder.open(file).ok() || !decoder.transcode(kCoefficientsPerByte * file.size(), made.bytes))
    return std::nullopt;
  made.making_seconds = thread_cpu_seconds() - started;
  return made;
}

}  // namespace

void NativePipeline::learn(const FilePart& part, const ImageContent& content, std::uint32_t seed, double seconds,
                           Workspace& workspace) const {
  const auto& files = state_->own_files;
  if (files == nullptr || !files->note(content, seconds)) return;
  // What trials cost is no cost of the pipeline's operations.
  auto& costs = workspace.state_->buffers.costs;
  OpCosts own = std::exchange(costs, {});
  const auto started = std::chrono::steady_clock::now();
  std::optional<SampleTrial> trial;
  try {
    trial = try_forms(part, content, seed, workspace);
  } catch (const std::bad_alloc&) {  // the sample is made; only its trial is not
  }
  costs = std::move(own);
  files->note_trial(trial, std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
}

std::optional<SampleTrial> NativePipeline::try_forms(const FilePart& part, const ImageContent& content,
                                                     std::uint32_t seed, Workspace& workspace) const {
  std::vector<std::uint8_t>& file = workspace.state_->file;
  std::vector<std::uint8_t> wire(wire_sample_bytes());
  const CaughtOutput caught;
  // Of the sample that is made of `bytes`; nullopt: it cannot be made of them. The second time counts: the first one
  // finds buffers and code of a form cold, as they are not where all samples are made from it.
  const auto seconds_from = [&](const std::vector<std::uint8_t>& bytes,
                                const ImageContent& form) -> std::optional<double> {
    double seconds = 0;
    for (int time = 0; time < 2; ++time) {
      file = bytes;
      const double started = thread_cpu_seconds();
      if (!run_ops(part, form, seed, wire, workspace, caught).ok()) return std::nullopt;
      seconds = thread_cpu_seconds() - started;
    }
    return seconds;
  };

  // 1. The file: as it has just been read from its source, or read anew.
  SampleTrial trial;
  trial.wait_seconds = content.wait_seconds;
  if (content.form != FileForm::kFile || content.wants_output_of || !content.is_of_source) {
    const auto seconds = state_->own_files->read_source(part, file);
    if (!seconds.ok()) return std::nullopt;
    trial.wait_seconds = *seconds;
  }
  if (file.size() > kTrialBytesMax) return std::nullopt;
  trial.file.bytes = file;
  const auto from_file = seconds_from(trial.file.bytes, {});
  if (!from_file) return std::nullopt;
  trial.file.seconds = *from_file;

  // 2. Its coefficients. What making them costs is what the sample costs more that is then made from them.
  if (trial.coefficients = transcode(trial.file.bytes); trial.coefficients) {
    TrialOfForm& form = *trial.coefficients;
    if (const auto seconds = seconds_from(form.bytes, {FileForm::kCoefficients})) {
      form.seconds = *seconds;
      form.making_seconds = std::max(0.0, form.making_seconds + *seconds - *from_file);
    } else {
      trial.coefficients.reset();
    }
  }

  // 3. The output of the prefix: what making it costs is what the sample costs more that it is made beside.
  if (state_->spec.prefix.fingerprint.empty()) return trial;
  const auto beside = seconds_from(trial.file.bytes, {FileForm::kFile, FileIdentity{}});
  if (!beside || caught.bytes.empty()) return trial;
  if (const auto seconds = seconds_from(caught.bytes, {FileForm::kOutput}))
    trial.output = TrialOfForm{caught.bytes, std::max(0.0, *beside - *from_file), *seconds};
  return trial;
}

}  // namespace sluice::pipeline
