#include "src/pipeline/audio/audio_library.h"

#include <cmath>
#include <memory>
#include <new>
#include <span>

#include "src/pipeline/audio/decibels.h"
#include "src/pipeline/audio/flac_stream.h"
#include "src/pipeline/audio/masked_copy.h"
#include "src/pipeline/audio/resampled_waveform.h"
#include "src/pipeline/audio/spectrogram.h"

namespace sluice::pipeline::audio {
namespace {

constexpr std::int32_t kDone = 0;
constexpr std::int32_t kRefused = 1;

struct Buffers {
  Spectrogram spectrogram;
  WaveformResampler resampler;
  FlacDecoder flac;
};

// Made for a thread's first waveform.
thread_local std::unique_ptr<Buffers> thread_buffers;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

bool within(std::int64_t number, std::int64_t least, std::int64_t most) { return number >= least && number <= most; }

bool bounded(std::int64_t channels, std::int64_t samples) {
  return within(channels, 1, kSluiceAudioSamplesMax) && within(samples, 1, kSluiceAudioSamplesMax / channels);
}

bool is_sound(const SluiceSpectrogram& asked) {
  return within(asked.transform_length, 1, kSluiceAudioTransformMax) &&
         within(asked.hop_length, 1, kSluiceAudioSamplesMax) &&
         within(asked.window_length, 1, asked.transform_length) && within(asked.bands, 0, kSluiceAudioBandsMax) &&
         within(asked.border, 0, 2) && std::isfinite(asked.scale) && asked.window != nullptr &&
         (asked.bands == 0 || asked.matrix != nullptr) &&
         Spectrogram::supports(static_cast<std::size_t>(asked.transform_length));
}

SpectrogramPlan plan_of(const SluiceSpectrogram& asked) {
  return {.transform_length = static_cast<std::size_t>(asked.transform_length),
          .hop_length = static_cast<std::size_t>(asked.hop_length),
          .border = asked.border == 0   ? Border::kNone
                    : asked.border == 1 ? Border::kReflected
                                        : Border::kZeros,
          .magnitudes = asked.magnitudes != 0,
          .scale = asked.scale};
}

// Calls `work` with the thread's buffers, and frees those that are too large to keep.
template <typename Work>
std::int32_t with_buffers(std::int64_t samples, const Work& work) {
  bool done = false;
  try {
    if (thread_buffers == nullptr) thread_buffers = std::make_unique<Buffers>();
    done = work(*thread_buffers);
  } catch (const std::bad_alloc&) {
    thread_buffers.reset();
  }
  if (samples > kSluiceAudioKeptSamplesMax) thread_buffers.reset();
  return done ? kDone : kRefused;
}

template <typename Sample>
std::int32_t decode(std::span<const std::uint8_t> file, const FlacStream& stream, void* samples, std::int64_t bytes) {
  const std::uint64_t count = stream.frames * stream.channels;
  if (static_cast<std::uint64_t>(bytes) != count * sizeof(Sample)) return kRefused;
  return with_buffers(stream.block_most, [&](Buffers& buffers) {
    return buffers.flac.decode(file, stream, std::span(static_cast<Sample*>(samples), count));
  });
}

}  // namespace
}  // namespace sluice::pipeline::audio

extern "C" {

int32_t sluice_audio_library_version(void) { return kSluiceAudioLibraryVersion; }

int64_t sluice_audio_frames(const SluiceSpectrogram* asked, int64_t samples) {
  using namespace sluice::pipeline::audio;
  if (asked == nullptr || !is_sound(*asked) || !bounded(1, samples)) return 0;
  return static_cast<int64_t>(Spectrogram::frames_of(plan_of(*asked), static_cast<std::size_t>(samples)));
}

int32_t sluice_audio_spectrogram(const SluiceSpectrogram* asked, const float* waveform, int64_t channels,
                                 int64_t samples, float* shown) {
  using namespace sluice::pipeline::audio;
  if (waveform == nullptr || shown == nullptr || !bounded(channels, samples)) return kRefused;
  const auto frames = static_cast<std::size_t>(sluice_audio_frames(asked, samples));
  if (frames == 0) return kRefused;
  return with_buffers(asked->transform_length, [&](Buffers& buffers) {
    Spectrogram& spectrogram = buffers.spectrogram;
    spectrogram.prepare(plan_of(*asked), {asked->window, static_cast<std::size_t>(asked->window_length)});
    if (asked->bands > 0) spectrogram.show_bands(asked->matrix, static_cast<std::size_t>(asked->bands));
    const auto length = static_cast<std::size_t>(samples);
    for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels); ++channel) {
      float* const to = shown + channel * frames * spectrogram.width();
      if (!spectrogram.run({waveform + channel * length, length}, Registers::kWidest, to)) return false;
    }
    return true;
  });
}

int32_t sluice_audio_decibels(const float* values, int64_t count, float multiplier, float least, float reference,
                              float range, float* decibels) {
  using namespace sluice::pipeline::audio;
  if (values == nullptr || decibels == nullptr || !bounded(1, count)) return kRefused;
  DecibelPlan plan{.multiplier = multiplier, .least = least, .reference = reference, .range = {}};
  if (range >= 0) plan.range = range;
  const auto size = static_cast<std::size_t>(count);
  return to_decibels(plan, {values, size}, Registers::kWidest, {decibels, size}) ? kDone : kRefused;
}

int32_t sluice_audio_mask(const SluiceMask* asked, const float* spectrogram, float* masked) {
  using namespace sluice::pipeline::audio;
  if (asked == nullptr || spectrogram == nullptr || masked == nullptr) return kRefused;
  if (!bounded(asked->rows, asked->columns) || !bounded(asked->planes, asked->rows * asked->columns)) return kRefused;
  const int64_t most = asked->masks_rows != 0 ? asked->rows : asked->columns;
  if (!within(asked->first, 0, most) || !within(asked->count, 0, most - asked->first)) return kRefused;
  const MaskPlan plan{.rows = static_cast<std::size_t>(asked->rows),
                      .columns = static_cast<std::size_t>(asked->columns),
                      .columns_first = asked->columns_first != 0,
                      .masks_rows = asked->masks_rows != 0,
                      .first = static_cast<std::size_t>(asked->first),
                      .count = static_cast<std::size_t>(asked->count),
                      .value = asked->value};
  const std::size_t plane = plan.rows * plan.columns;
  for (std::size_t i = 0; i < static_cast<std::size_t>(asked->planes); ++i) {
    copy_masked(plan, spectrogram + i * plane, Registers::kWidest, masked + i * plane);
  }
  return kDone;
}

int32_t sluice_audio_resample(const SluiceResampling* asked, const float* waveform, int64_t channels, int64_t samples,
                              int64_t outputs, float* resampled) {
  using namespace sluice::pipeline::audio;
  if (asked == nullptr || waveform == nullptr || resampled == nullptr || asked->kernel == nullptr) return kRefused;
  if (!bounded(channels, samples) || !bounded(channels, outputs) || !within(asked->stride, 1, samples)) return kRefused;
  if (!bounded(asked->phases, asked->taps) || !within(asked->border, 0, asked->taps)) return kRefused;
  // The last output's block begins within the waveform.
  if ((outputs - 1) / asked->phases > samples / asked->stride) return kRefused;
  return with_buffers(std::max(samples, asked->phases * asked->taps), [&](Buffers& buffers) {
    const ResamplePlan plan{static_cast<std::size_t>(asked->phases), static_cast<std::size_t>(asked->taps),
                            static_cast<std::size_t>(asked->stride), static_cast<std::size_t>(asked->border)};
    buffers.resampler.prepare(plan, asked->kernel);
    const auto from = static_cast<std::size_t>(samples);
    const auto to = static_cast<std::size_t>(outputs);
    for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels); ++channel) {
      const std::span<float> written{resampled + channel * to, to};
      if (!buffers.resampler.run({waveform + channel * from, from}, Registers::kWidest, written)) return false;
    }
    return true;
  });
}

int32_t sluice_audio_flac_info(const uint8_t* file, int64_t file_bytes, SluiceFlac* info) {
  using namespace sluice::pipeline::audio;
  if (file == nullptr || info == nullptr || file_bytes < 0) return kRefused;
  const auto stream = read_flac_stream({file, static_cast<std::size_t>(file_bytes)});
  if (!stream) return kRefused;
  *info = {static_cast<int64_t>(stream->frames), static_cast<int32_t>(stream->channels),
           static_cast<int32_t>(stream->bits), static_cast<int32_t>(stream->rate_hertz)};
  return kDone;
}

int32_t sluice_audio_flac_samples(const uint8_t* file, int64_t file_bytes, int32_t kind, void* samples,
                                  int64_t samples_bytes) {
  using namespace sluice::pipeline::audio;
  if (file == nullptr || samples == nullptr || file_bytes < 0) return kRefused;
  const std::span bytes(file, static_cast<std::size_t>(file_bytes));
  const auto stream = read_flac_stream(bytes);
  if (!stream) return kRefused;
  if (kind == 0) return decode<float>(bytes, *stream, samples, samples_bytes);
  if (kind == 1) return decode<double>(bytes, *stream, samples, samples_bytes);
  return kind == 2 ? decode<std::int16_t>(bytes, *stream, samples, samples_bytes) : kRefused;
}

}  // extern "C"
