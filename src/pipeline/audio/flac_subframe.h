// One channel of a FLAC frame (RFC 9639, section 9.2).
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "src/pipeline/audio/bit_reader.h"
#include "src/pipeline/audio/flac_prediction.h"

namespace sluice::pipeline::audio {

// Reads row.length samples of so many bits (at most 25) as add_flac_predictions() takes them. False for what the format
// does not allow, or no encoder writes; what is read behind the end of the bits is for the caller to notice.
bool read_flac_subframe(BitReader& reader, unsigned bits, FlacRow& row, std::int32_t* samples);

}  // namespace sluice::pipeline::audio
