// Logarithms of spectrograms, as torchaudio's amplitude_to_DB defines them.
//
// Thread safety: pure functions.
#pragma once

#include <optional>
#include <span>

#include "src/pipeline/audio/lanes.h"

namespace sluice::pipeline::audio {

struct DecibelPlan {
  float multiplier;
  float least;                 // smaller values count as this one
  float reference;             // decibels of it, which are subtracted
  std::optional<float> range;  // below the largest result; smaller results become that
};

// multiplier * log10(max(value, least)) - reference. False, and the results are unspecified, where a value is not
// finite or `least` is not a normal number. REQUIRES: values.size() == results.size()
bool to_decibels(const DecibelPlan& plan, std::span<const float> values, Registers registers, std::span<float> results);

}  // namespace sluice::pipeline::audio
