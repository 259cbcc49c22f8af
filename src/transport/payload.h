// Bytes that came with a message, still where the transport put them.
//
// gRPC delivers a message as pieces of its read buffers; copying them together first would be a second copy of every
// batch. Thread safety: values; the bytes are immutable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::transport {

class Payload {
 public:
  using Piece = std::span<const std::uint8_t>;

  Payload() = default;
  // `owner` keeps the pieces' memory alive.
  Payload(std::vector<Piece> pieces, std::shared_ptr<const void> owner)
      : pieces_(std::move(pieces)), owner_(std::move(owner)) {
    for (const Piece& piece : pieces_) bytes_ += piece.size();
  }

  std::size_t bytes() const { return bytes_; }
  const std::vector<Piece>& pieces() const { return pieces_; }

  // REQUIRES: offset + out.size() <= bytes()
  void copy_to(std::size_t offset, std::span<std::uint8_t> out) const {
    for (const Piece& piece : pieces_) {
      if (out.empty()) return;
      if (offset >= piece.size()) {
        offset -= piece.size();
        continue;
      }
      const std::size_t count = std::min(out.size(), piece.size() - offset);
      std::memcpy(out.data(), piece.data() + offset, count);
      out = out.subspan(count);
      offset = 0;
    }
  }

  // The range as one piece: in place if it lies in one, else copied to `scratch`. REQUIRES: as above.
  Piece contiguous(std::size_t offset, std::size_t count, std::vector<std::uint8_t>& scratch) const {
    std::size_t skipped = offset;
    for (const Piece& piece : pieces_) {
      if (skipped < piece.size()) {
        if (piece.size() - skipped >= count) return piece.subspan(skipped, count);
        break;
      }
      skipped -= piece.size();
    }
    scratch.resize(count);
    copy_to(offset, scratch);
    return scratch;
  }

  std::string text() const {
    std::string result(bytes_, '\0');
    copy_to(0, {reinterpret_cast<std::uint8_t*>(result.data()), result.size()});
    return result;
  }

 private:
  std::vector<Piece> pieces_;
  std::shared_ptr<const void> owner_;
  std::size_t bytes_ = 0;
};

}  // namespace sluice::transport
