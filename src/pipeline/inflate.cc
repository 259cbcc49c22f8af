#include "src/pipeline/inflate.h"

#include <new>

#include <libdeflate.h>

namespace sluice::pipeline {
namespace {

// A match of the longest length takes at least two bits: 1032 bytes for each byte of the stream.
constexpr std::size_t kMostBytesPerByte = 1032;
constexpr unsigned kLargestWindow = 7;
constexpr unsigned kSmallestWindowBits = 8;

bool window_suffices(std::span<const std::uint8_t> stream, std::size_t output_bytes) {
  const unsigned window = stream[0] >> 4;
  return window >= kLargestWindow || output_bytes <= std::size_t{1} << (window + kSmallestWindowBits);
}

}  // namespace

void Inflater::Free::operator()(libdeflate_decompressor* decompressor) const {
  libdeflate_free_decompressor(decompressor);
}

Inflater::Inflater() : decompressor_(libdeflate_alloc_decompressor()) {
  if (decompressor_ == nullptr) throw std::bad_alloc();
}

bool Inflater::inflate(std::span<const std::uint8_t> stream, std::span<std::uint8_t> output) {
  if (stream.empty() || !window_suffices(stream, output.size())) return false;
  return libdeflate_zlib_decompress(decompressor_.get(), stream.data(), stream.size(), output.data(), output.size(),
                                    nullptr) == LIBDEFLATE_SUCCESS;
}

bool Inflater::exceeds(std::span<const std::uint8_t> stream, std::span<std::uint8_t> scratch) {
  std::size_t made = 0;
  return libdeflate_zlib_decompress(decompressor_.get(), stream.data(), stream.size(), scratch.data(), scratch.size(),
                                    &made) == LIBDEFLATE_INSUFFICIENT_SPACE;
}

std::size_t Inflater::most_bytes_of(std::size_t stream_bytes) { return (stream_bytes + 1) * kMostBytesPerByte; }

std::uint32_t crc32_of(std::span<const std::uint8_t> bytes) { return libdeflate_crc32(0, bytes.data(), bytes.size()); }

}  // namespace sluice::pipeline
