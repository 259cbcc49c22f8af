// Frames of the local protocol: client <-> feeder and Python child <-> parent (docs/designs/protocols.md section 4).
//
//   u32le json_bytes | u32le blob_bytes | json | blob
//
// FrameDecoder turns a byte stream cut at arbitrary places into frames and refuses sizes above its limits before it
// reserves memory for them. FrameSocket is the blocking form for peers that have a thread of their own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.h"
#include "src/transport/unique_fd.h"

namespace sluice::transport {

inline constexpr std::size_t kFrameHeaderBytes = 8;

struct FrameLimits {
  std::size_t json_bytes = std::size_t{16} << 20;
  std::size_t blob_bytes = std::size_t{1} << 30;
};

struct Frame {
  std::string json;
  std::string blob;
};

// The 8 header bytes followed by json; the blob is written after it. REQUIRES: both sizes fit in 32 bits.
std::string frame_head(std::string_view json, std::size_t blob_bytes);
std::string encode_frame(std::string_view json, std::string_view blob = {});

// Thread safety: none; one decoder per connection.
class FrameDecoder {
 public:
  explicit FrameDecoder(FrameLimits limits = {}) : limits_(limits) {}

  // Consumes all of `bytes` and appends the frames completed by them to `frames`.
  // Errors: InvalidArgument naming json_bytes or blob_bytes; the stream cannot be read any further.
  Result<void> feed(std::span<const char> bytes, std::vector<Frame>& frames);

  // True between frames: end of stream here is a clean close.
  bool idle() const { return header_filled_ == 0; }

 private:
  Result<void> read_header();

  FrameLimits limits_;
  char header_[kFrameHeaderBytes] = {};
  std::size_t header_filled_ = 0;
  std::size_t json_bytes_ = 0;
  std::size_t blob_bytes_ = 0;
  Frame frame_;
};

// A connected stream socket that exchanges whole frames and, with them, file descriptors.
// Thread safety: one thread may receive while another sends.
class FrameSocket {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  explicit FrameSocket(UniqueFd fd, FrameLimits limits = {});

  int fd() const { return fd_.get(); }

  // Sends a frame; `passed_fd` (if >= 0) travels with its first byte. Blocks until the kernel has taken everything.
  // Errors: DeadlineExceeded (the stream is unusable then), Unavailable when the peer is gone.
  Result<void> send(std::string_view json, std::string_view blob, Deadline deadline, int passed_fd = -1);

  // The next frame. Errors: DeadlineExceeded, Cancelled (`stop`), Unavailable (closed), InvalidArgument (bad frame).
  Result<Frame> receive(Deadline deadline, const std::stop_token& stop = {});

  // The descriptor that came with the frames received so far, if any; the caller owns it.
  UniqueFd take_passed_fd() { return std::move(passed_fd_); }

 private:
  Result<void> read_some();

  UniqueFd fd_;
  UniqueFd passed_fd_;
  FrameDecoder decoder_;
  std::vector<Frame> ready_;
  std::size_t next_ready_ = 0;
};

// Sends as much of `bytes` as the non-blocking socket takes, with `passed_fd` (if >= 0) on the first byte. Returns
// the number of bytes taken, 0 when the socket is full. Never raises SIGPIPE.
Result<std::size_t> send_some(int socket, std::span<const char> bytes, int passed_fd = -1);

// Receives what has arrived, at most `bytes`. A descriptor that came with it goes to `passed_fd`; of several the last.
// Returns the number of bytes, 0 when there are none yet. Errors: Unavailable when the peer has closed its end.
Result<std::size_t> receive_some(int socket, std::span<char> bytes, UniqueFd& passed_fd);

}  // namespace sluice::transport
