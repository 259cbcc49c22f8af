#include "src/pipeline/audio/spectrogram.h"

#include <algorithm>
#include <cmath>

namespace sluice::pipeline::audio {
namespace {

constexpr std::size_t kTransformsKept = 8;

// The sample at a position that may be outside of the waveform.
float sample_at(std::span<const float> waveform, std::ptrdiff_t position, Border border) {
  const auto length = static_cast<std::ptrdiff_t>(waveform.size());
  if (position < 0 || position >= length) {
    if (border != Border::kReflected) return 0.0F;
    position = position < 0 ? -position : 2 * (length - 1) - position;
  }
  return waveform[static_cast<std::size_t>(position)];
}

// Windowed samples as the rows of a transform. kPairs: two rows after each other are one complex number.
template <bool kPairs>
SLUICE_INLINE void load_frames(const float* const* frames, const float* window, std::size_t length,
                               ComplexLanes* rows) {
  std::size_t first = 0;
  for (; first + kLanes <= length; first += kLanes) {
    Lanes block[kLanes];
    Lanes factors;
    load(window + first, factors);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      load(frames[lane] + first, block[lane]);
      block[lane] *= factors;
    }
    transpose(block);
    for (std::size_t i = 0; i < kLanes; ++i) {
      if constexpr (!kPairs) rows[first + i] = {block[i], Lanes{}};
    }
    for (std::size_t i = 0; i < kLanes / 2; ++i) {
      if constexpr (kPairs) rows[first / 2 + i] = {block[2 * i], block[2 * i + 1]};
    }
  }
  for (; first < length; ++first) {
    Lanes lanes = {};
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = frames[lane][first] * window[first];
    if constexpr (!kPairs) {
      rows[first] = {lanes, Lanes{}};
    } else {
      (first % 2 == 0 ? rows[first / 2].re : rows[first / 2].im) = lanes;
    }
  }
}

// Rows of lanes as rows of frames, for the first `lanes` frames.
SLUICE_INLINE void store_frames(const LaneRow* rows, std::size_t count, std::size_t lanes, float* frames) {
  std::size_t first = 0;
  for (; first + kLanes <= count; first += kLanes) {
    Lanes block[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) block[i] = rows[first + i].lanes;
    transpose(block);
    for (std::size_t lane = 0; lane < lanes; ++lane) store(block[lane], frames + lane * count + first);
  }
  for (; first < count; ++first) {
    for (std::size_t lane = 0; lane < lanes; ++lane) frames[lane * count + first] = rows[first].lanes[lane];
  }
}

SLUICE_INLINE void square(const Lanes& re, const Lanes& im, LaneRow& squared) { squared.lanes = re * re + im * im; }

// Squared magnitudes of a real signal of even length. Its even and odd samples were transformed as real and imaginary
// parts of half as many numbers, and halved; symmetry tells them apart.
SLUICE_INLINE void square_pairs(const ComplexLanes* pairs, std::size_t count, const Root* roots, LaneRow* squares) {
  const Lanes first = (pairs[0].re + pairs[0].im) * 2.0F;
  const Lanes last = (pairs[0].re - pairs[0].im) * 2.0F;
  squares[0].lanes = first * first;
  squares[count].lanes = last * last;
  for (std::size_t k = 1; k <= count / 2; ++k) {
    const ComplexLanes& a = pairs[k];
    const ComplexLanes& b = pairs[count - k];
    const Lanes even_re = a.re + b.re, even_im = a.im - b.im;
    const Lanes odd_re = a.im + b.im, odd_im = b.re - a.re;
    ComplexLanes turned;
    multiply(odd_re, odd_im, roots[k], turned);
    square(even_re + turned.re, even_im + turned.im, squares[k]);
    square(even_re - turned.re, even_im - turned.im, squares[count - k]);
  }
}

}  // namespace

// What is done with eight frames, compiled twice: for every processor, and for wide registers.
struct Spectrogram::Kernel {
  using Show = void (*)(Spectrogram&, const float* const*, std::size_t, float*, LaneRow&);

  SLUICE_INLINE static void show(Spectrogram& self, const float* const* frames, std::size_t lanes, float* shown,
                                 LaneRow& sums_of_squares) {
    const std::size_t length = self.plan_.transform_length;
    const bool pairs = length % 2 == 0;
    ComplexLanes* const rows = self.rows_.data();
    LaneRow* const bins = self.bin_rows_.data();
    if (pairs) {
      load_frames<true>(frames, self.window_.data(), length, rows);
    } else {
      load_frames<false>(frames, self.window_.data(), length, rows);
    }
    const ComplexLanes* const result = audio::run(*self.transform_, rows, self.spare_rows_.data());
    if (pairs) {
      square_pairs(result, length / 2, self.roots_.data(), bins);
    } else {
      for (std::size_t k = 0; k < self.bins(); ++k) square(result[k].re, result[k].im, bins[k]);
    }
    sums_of_squares.lanes = Lanes{};
    for (std::size_t k = 0; k < self.bins(); ++k) sums_of_squares.lanes += bins[k].lanes;
    if (self.plan_.magnitudes) take_roots(bins, self.bins());
    if (self.shows_bands_) sum_bands(self.bands_, bins, self.band_rows_.data());
    store_frames(self.shows_bands_ ? self.band_rows_.data() : bins, self.width(), lanes, shown);
  }

  SLUICE_INLINE static void take_roots(LaneRow* rows, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) {
      float lanes[kLanes];
      store(rows[k].lanes, lanes);
      for (float& lane : lanes) lane = std::sqrt(lane);
      load(lanes, rows[k].lanes);
    }
  }

  static void show_portably(Spectrogram& self, const float* const* frames, std::size_t lanes, float* shown,
                            LaneRow& sums_of_squares) {
    show(self, frames, lanes, shown, sums_of_squares);
  }

#if defined(__x86_64__)
  __attribute__((target("avx2"))) static void show_widely(Spectrogram& self, const float* const* frames,
                                                          std::size_t lanes, float* shown, LaneRow& sums_of_squares) {
    show(self, frames, lanes, shown, sums_of_squares);
  }
#endif

  static Show of([[maybe_unused]] Registers registers) {
#if defined(__x86_64__)
    if (are_wide(registers)) return show_widely;
#endif
    return show_portably;
  }
};

std::size_t Spectrogram::frames_of(const SpectrogramPlan& plan, std::size_t samples) {
  const std::size_t border = plan.border == Border::kNone ? 0 : plan.transform_length / 2;
  if (samples == 0 || plan.transform_length == 0 || plan.hop_length == 0) return 0;
  if (plan.border == Border::kReflected && border >= samples) return 0;
  const std::size_t length = samples + 2 * border;
  return length < plan.transform_length ? 0 : 1 + (length - plan.transform_length) / plan.hop_length;
}

const LaneTransform& Spectrogram::transform_of(std::size_t length) {
  for (const auto& known : transforms_) {
    if (known->length() == length) return *known;
  }
  if (transforms_.size() == kTransformsKept) transforms_.clear();
  return *transforms_.emplace_back(std::make_unique<LaneTransform>(length));
}

void Spectrogram::prepare(const SpectrogramPlan& plan, std::span<const float> window) {
  const std::size_t length = plan.transform_length;
  const bool pairs = length % 2 == 0;
  if (length != plan_.transform_length) {
    const std::size_t rows = pairs ? length / 2 : length;
    transform_ = &transform_of(rows);
    rows_.resize(rows);
    spare_rows_.resize(rows);
    bin_rows_.resize(length / 2 + 1);
    edges_.resize(kLanes * length);
    roots_.clear();
    for (std::size_t k = 0; k <= length / 4; ++k) roots_.push_back(root_of_unity(k, length));
  }
  plan_ = plan;
  const float scale = pairs ? plan.scale / 2 : plan.scale;
  window_.assign(length, 0.0F);
  const std::size_t offset = (length - window.size()) / 2;
  for (std::size_t i = 0; i < window.size(); ++i) window_[offset + i] = window[i] * scale;
  shows_bands_ = false;
}

void Spectrogram::show_bands(const float* matrix, std::size_t count) {
  bands_.pack(matrix, bins(), count);
  band_rows_.resize(count);
  shows_bands_ = true;
}

const float* Spectrogram::frame(std::span<const float> waveform, std::size_t number, std::size_t lane) {
  const std::size_t length = plan_.transform_length;
  const std::size_t border = plan_.border == Border::kNone ? 0 : length / 2;
  const auto begin = static_cast<std::ptrdiff_t>(number * plan_.hop_length) - static_cast<std::ptrdiff_t>(border);
  if (begin >= 0 && static_cast<std::size_t>(begin) + length <= waveform.size()) return waveform.data() + begin;
  float* const copy = edges_.data() + lane * length;
  for (std::size_t i = 0; i < length; ++i) {
    copy[i] = sample_at(waveform, begin + static_cast<std::ptrdiff_t>(i), plan_.border);
  }
  return copy;
}

bool Spectrogram::run(std::span<const float> waveform, [[maybe_unused]] Registers registers, float* shown) {
  const std::size_t frames = frames_of(plan_, waveform.size());
  const Kernel::Show show = Kernel::of(registers);
  bool exact = true;
  for (std::size_t first = 0; first < frames; first += kLanes) {
    const std::size_t lanes = std::min(kLanes, frames - first);
    const float* starts[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {  // Missing frames repeat the last one, in vain.
      starts[lane] = lane < lanes ? frame(waveform, first + lane, lane) : starts[lanes - 1];
    }
    LaneRow sums_of_squares;
    show(*this, starts, lanes, shown + first * width(), sums_of_squares);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float sum = sums_of_squares.lanes[lane];
      exact = exact && std::isfinite(sum) && (sum == 0.0F || sum >= kQuietestSum);
    }
  }
  return exact;
}

}  // namespace sluice::pipeline::audio
