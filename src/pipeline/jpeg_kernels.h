// The inner loops of the baseline JPEG decoder, in one version for every machine and one for x86 processors.
//
// All versions give the bytes of libjpeg-turbo with the accurate integer transform and fancy upsampling. Where
// damaged data lead outside of 16 bits, they do what libjpeg-turbo's vector code for x86 does.
//
// Thread safety: pure functions, but for what their arguments point to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/pipeline/jpeg_huffman_table.h"

namespace sluice::pipeline {

// Rows of samples may be read and written up to this many behind what is asked for, rows of pixels written.
inline constexpr std::size_t kSampleRowMargin = 64;
inline constexpr std::size_t kPixelRowMargin = 16;

// The next bits of a segment (jpeg_entropy_data.h): `count` of them at least are at the top of `bits`.
struct BitReader {
  std::uint64_t bits = 0;
  std::uint32_t count = 0;
  const std::uint8_t* next = nullptr;
  const std::uint8_t* end = nullptr;  // of the segment; readable for EntropyData::kPaddingBytes more

  // Bits of the segment that are not read yet; negative if more were read than there are.
  std::ptrdiff_t bits_left() const { return (end - next) * 8 + static_cast<std::ptrdiff_t>(count); }
};

// The codes of a component, and the first coefficient of its last block.
struct BlockCoding {
  const HuffmanTable* first = nullptr;
  const HuffmanPairTable* others = nullptr;
  std::uint32_t last_first = 0;  // modulo 2^32
};

// Coefficients in rows, and one that is not read.
struct alignas(32) CoefficientBlock {
  std::int16_t values[kBlockEnd + 16];
};

// Bytes of a packed block (jpeg_block_packing.h), and what may be read and written behind where one begins.
inline constexpr std::size_t kPackedBytesMax = 137;
inline constexpr std::size_t kPackedMarginBytes = 192;
inline constexpr std::uint32_t kPackedFixedBytes = 3;

struct JpegKernels {
  const char* name;

  // Reads the next block. Returns the index behind its last coefficient that may not be zero, in zigzag order, or 0 if
  // there is anything wrong with it.
  // REQUIRES: reader.bits_left() >= 0
  std::uint32_t (*read_block)(BitReader& reader, BlockCoding& coding, CoefficientBlock& block);
  // The same without the coefficients; false if there is anything wrong.
  bool (*skip_block)(BitReader& reader, BlockCoding& coding);

  // Returns the length of the packed block; 0 if its first coefficient is larger than those of any sound image.
  std::uint32_t (*pack_block)(const CoefficientBlock& block, std::uint8_t* packed);
  // Returns the length of what it took for a packed block, whatever the bytes are.
  std::uint32_t (*unpack_block)(const std::uint8_t* packed, CoefficientBlock& block);

  // 8 x 8 samples of the block's coefficients times `steps`.
  void (*inverse_transform)(const CoefficientBlock& block, const std::int16_t* steps, std::uint8_t* target,
                            std::size_t stride_bytes);

  // Twice `count` samples of `count`, one row of them or two. Samples -1 and `count` are read, too.
  void (*widen)(const std::uint8_t* samples, std::uint8_t* target, std::size_t count);
  void (*widen_between)(const std::uint8_t* near, const std::uint8_t* far, std::uint8_t* target, std::size_t count);

  void (*to_rgb)(const std::uint8_t* luma, const std::uint8_t* blue, const std::uint8_t* red, std::uint8_t* pixels,
                 std::size_t count);
  void (*grey_to_rgb)(const std::uint8_t* luma, std::uint8_t* pixels, std::size_t count);
};

const JpegKernels& portable_jpeg_kernels();

// Those that this processor can run; none on other architectures.
std::vector<const JpegKernels*> x86_jpeg_kernels();

// All that this machine can run; the last is the fastest.
std::vector<const JpegKernels*> available_jpeg_kernels();

// Those that are faster than libjpeg-turbo; nullptr if there are none, as the portable ones are not.
const JpegKernels* fast_jpeg_kernels();

}  // namespace sluice::pipeline
