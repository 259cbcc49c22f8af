// Eight floats, one each of eight frames of a signal. All arithmetic goes lane by lane, so a frame's numbers do not
// depend on its neighbours, nor on how many lanes a processor computes at once: every processor gives the same bits.
//
// The functions are compiled into their callers, so that a caller compiled for wider registers uses them here, too.
// Vectors are handed over by address: how they are passed by value depends on those registers.
#pragma once

#include <cstddef>

#include "src/pipeline/registers.h"

#define SLUICE_INLINE [[gnu::always_inline]] inline

namespace sluice::pipeline::audio {

using pipeline::Registers;

inline constexpr std::size_t kLanes = 8;

// The alignment is said, as a compiler for narrow registers takes less for granted than one for wide ones.
inline constexpr std::size_t kLanesBytes = kLanes * sizeof(float);
using Lanes = float __attribute__((vector_size(kLanesBytes), aligned(kLanesBytes)));

// A vector as an element of containers, which would drop its alignment.
struct alignas(kLanesBytes) LaneRow {
  Lanes lanes;
};

struct alignas(kLanesBytes) ComplexLanes {
  Lanes re, im;
};

// Lanes at any address. A memcpy into a vector goes by way of the stack, in halves, for which the processor waits.
typedef float LooseLanes  // clang takes the alignment of a typedef only
    __attribute__((vector_size(kLanesBytes), aligned(alignof(float)), may_alias));

SLUICE_INLINE void load(const float* from, Lanes& lanes) { lanes = *reinterpret_cast<const LooseLanes*>(from); }

SLUICE_INLINE void store(const Lanes& lanes, float* to) { *reinterpret_cast<LooseLanes*>(to) = lanes; }

// Row i, lane j becomes row j, lane i.
SLUICE_INLINE void transpose(Lanes (&rows)[kLanes]) {
  Lanes pairs[kLanes];
  for (std::size_t i = 0; i < kLanes; i += 2) {
    pairs[i] = __builtin_shufflevector(rows[i], rows[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    pairs[i + 1] = __builtin_shufflevector(rows[i], rows[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  Lanes fours[kLanes];
  for (std::size_t i = 0; i < kLanes; i += 4) {
    for (std::size_t j = 0; j < 2; ++j) {
      fours[i + j] = __builtin_shufflevector(pairs[i + j], pairs[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      fours[i + j + 2] = __builtin_shufflevector(pairs[i + j], pairs[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (std::size_t j = 0; j < 4; ++j) {
    rows[j] = __builtin_shufflevector(fours[j], fours[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    rows[j + 4] = __builtin_shufflevector(fours[j], fours[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

}  // namespace sluice::pipeline::audio
