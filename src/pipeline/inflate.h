// Decompression of zlib streams (RFC 1950) whose size is known, by libdeflate: it takes half of zlib's time, and needs
// the stream and its result in one piece each.
//
// Thread safety: none; one per thread. inflate() never writes outside of `output`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct libdeflate_decompressor;

namespace sluice::pipeline {

class Inflater {
 public:
  Inflater();  // throws std::bad_alloc

  // Whether the stream is sound, its checksum included, and makes exactly the bytes that `output` holds. False also for
  // a stream that announces a smaller window than it may use: zlib refuses those that do use it.
  bool inflate(std::span<const std::uint8_t> stream, std::span<std::uint8_t> output);

  // Whether the stream makes more bytes than `scratch` holds. False if it is damaged before that.
  bool exceeds(std::span<const std::uint8_t> stream, std::span<std::uint8_t> scratch);

  // The most bytes that a stream of so many bytes can make.
  static std::size_t most_bytes_of(std::size_t stream_bytes);

 private:
  struct Free {
    void operator()(libdeflate_decompressor* decompressor) const;
  };
  std::unique_ptr<libdeflate_decompressor, Free> decompressor_;
};

// As in PNG files.
std::uint32_t crc32_of(std::span<const std::uint8_t> bytes);

}  // namespace sluice::pipeline
