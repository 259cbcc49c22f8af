// The C interface of libsluice_audio.so: what processes that make batches call in the place of torchaudio's own code
// (docs/designs/audio.md).
//
// Each function writes as many floats as its comment says and returns 0. It returns anything else for what only
// torchaudio answers for; the floats are then unspecified. Every argument but the addresses is checked.
//
// Thread safety: any number of threads; each has its own buffers, which are freed behind a call that needed more than
// kSluiceAudioKeptSamplesMax samples.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Changes with the meaning of any function or field. Python does not use a library of another version.
inline constexpr int32_t kSluiceAudioLibraryVersion = 1;
inline constexpr int64_t kSluiceAudioSamplesMax = int64_t{1} << 30;
inline constexpr int64_t kSluiceAudioKeptSamplesMax = int64_t{1} << 22;
inline constexpr int64_t kSluiceAudioTransformMax = int64_t{1} << 16;
inline constexpr int64_t kSluiceAudioBandsMax = int64_t{1} << 12;

struct SluiceSpectrogram {
  int64_t transform_length, hop_length, window_length;
  const float* window;
  int64_t bands;        // 0: bins are shown
  const float* matrix;  // [transform_length / 2 + 1][bands]
  int32_t border;       // half a transform on both sides: 0 none, 1 reflected, 2 zeros
  int32_t magnitudes;   // 0: their squares
  float scale;          // of the magnitudes
};

int32_t sluice_audio_library_version(void);

// Number of frames of a waveform; 0: torchaudio has to make the spectrogram.
int64_t sluice_audio_frames(const SluiceSpectrogram* asked, int64_t samples);

// Writes [channels][frames][bands or bins] floats of [channels][samples].
int32_t sluice_audio_spectrogram(const SluiceSpectrogram* asked, const float* waveform, int64_t channels,
                                 int64_t samples, float* shown);

// Writes `count` floats: multiplier * log10(max(value, least)) - reference, and not less than `range` below the largest
// of them. A negative range: without that limit.
int32_t sluice_audio_decibels(const float* values, int64_t count, float multiplier, float least, float reference,
                              float range, float* decibels);

struct SluiceMask {
  int64_t planes, rows, columns;
  int64_t first, count;   // of the rows or columns that get the value
  int32_t columns_first;  // 1: in memory, the columns of what is copied lie one after the other
  int32_t masks_rows;     // 0: masks columns
  float value;
};

// Writes [planes][rows][columns] floats: a copy, masked.
int32_t sluice_audio_mask(const SluiceMask* asked, const float* spectrogram, float* masked);

struct SluiceResampling {
  int64_t phases, taps, stride, border;  // ResamplePlan
  const float* kernel;                   // [phases][taps]
};

// Writes [channels][outputs] floats of [channels][samples].
int32_t sluice_audio_resample(const SluiceResampling* asked, const float* waveform, int64_t channels, int64_t samples,
                              int64_t outputs, float* resampled);

// A FLAC file in memory: samples of a channel, and of what kind.
struct SluiceFlac {
  int64_t frames;
  int32_t channels, bits, rate_hertz;
};

int32_t sluice_audio_flac_info(const uint8_t* file, int64_t file_bytes, SluiceFlac* info);

// Writes [frames][channels] samples, which are float32 (`kind` 0), float64 (1) or int16 (2), to a place of so many
// bytes.
int32_t sluice_audio_flac_samples(const uint8_t* file, int64_t file_bytes, int32_t kind, void* samples,
                                  int64_t samples_bytes);

}  // extern "C"
