// Bytes that no process can change any more, in memory that processes share: a sealed memfd.
//
// A pipeline's description may be as large as its data set. It is written once, and then travels between processes as a
// descriptor. Every process that has the descriptor maps the same memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "src/base/result.h"
#include "src/transport/unique_fd.h"

namespace sluice::transport {

// Thread safety: immutable.
class SealedMemory {
 public:
  // The file that another process has passed. Errors: InvalidArgument unless it is a memfd of at most `bytes_max`
  // bytes, sealed against writing and shrinking. Without seals the other end could break this process, or change
  // checked bytes.
  static Result<std::shared_ptr<const SealedMemory>> adopt(UniqueFd fd, std::size_t bytes_max);
  // A copy of `bytes`.
  static Result<std::shared_ptr<const SealedMemory>> copy_of(std::string_view bytes);

  ~SealedMemory();
  SealedMemory(const SealedMemory&) = delete;
  SealedMemory& operator=(const SealedMemory&) = delete;

  int fd() const { return fd_.get(); }
  std::string_view bytes() const { return {data_, bytes_}; }

 private:
  SealedMemory(UniqueFd fd, const char* data, std::size_t bytes) : fd_(std::move(fd)), data_(data), bytes_(bytes) {}

  const UniqueFd fd_;
  const char* const data_;  // null if there are no bytes
  const std::size_t bytes_;
};
using SealedMemoryHandle = std::shared_ptr<const SealedMemory>;

// Memory that is still being written, from its start to its end. What has not been written occupies no memory.
// Thread safety: none.
class MemoryWriter {
 public:
  static Result<MemoryWriter> create(std::size_t bytes);

  std::size_t bytes_left() const { return bytes_ - written_; }
  // REQUIRES: at most bytes_left().
  Result<void> append(std::span<const std::byte> bytes);
  // REQUIRES: bytes_left() is 0.
  Result<SealedMemoryHandle> seal() &&;

 private:
  MemoryWriter(UniqueFd fd, std::size_t bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  UniqueFd fd_;
  std::size_t bytes_;
  std::size_t written_ = 0;
};

}  // namespace sluice::transport
