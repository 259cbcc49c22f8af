#include "src/transport/frame.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sluice::transport {
namespace {

// A stopped wait notices within this time; frames themselves wake it at once.
constexpr std::chrono::milliseconds kStopPollInterval{50};
constexpr std::size_t kReadBytes = 64 << 10;

void put_u32(char* out, std::size_t value) {
  for (int byte = 0; byte < 4; ++byte) out[byte] = static_cast<char>((value >> (8 * byte)) & 0xFF);
}

std::size_t get_u32(const char* in) {
  std::size_t value = 0;
  for (int byte = 0; byte < 4; ++byte) value |= std::size_t{static_cast<unsigned char>(in[byte])} << (8 * byte);
  return value;
}

// Moves up to `wanted - out.size()` bytes from the front of `bytes` to `out`. Memory grows with the bytes that have
// arrived, not with the size that was announced.
void move_bytes(std::string& out, std::size_t wanted, std::span<const char>& bytes) {
  const std::size_t count = std::min(wanted - out.size(), bytes.size());
  out.append(bytes.data(), count);
  bytes = bytes.subspan(count);
}

// Waits for `events` on the socket. Returns false at the deadline.
Result<bool> wait_socket(int fd, short events, FrameSocket::Deadline deadline, const std::stop_token& stop) {
  while (true) {
    if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped while waiting for a frame");
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (stop.stop_possible()) left = std::min(left, kStopPollInterval);
    left = std::min<std::chrono::milliseconds>(left, std::chrono::hours(1));
    pollfd entry{fd, events, 0};
    const int count = ::poll(&entry, 1, static_cast<int>(left.count()));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return errno_error("poll");
  }
}

}  // namespace

std::string frame_head(std::string_view json, std::size_t blob_bytes) {
  std::string head(kFrameHeaderBytes, '\0');
  put_u32(head.data(), json.size());
  put_u32(head.data() + 4, blob_bytes);
  head.append(json);
  return head;
}

std::string encode_frame(std::string_view json, std::string_view blob) {
  std::string bytes = frame_head(json, blob.size());
  bytes.append(blob);
  return bytes;
}

Result<void> FrameDecoder::read_header() {
  json_bytes_ = get_u32(header_);
  blob_bytes_ = get_u32(header_ + 4);
  if (json_bytes_ > limits_.json_bytes) {
    return invalid_argument("frame: json_bytes is " + std::to_string(json_bytes_) + ", more than " +
                            std::to_string(limits_.json_bytes));
  }
  if (blob_bytes_ > limits_.blob_bytes) {
    return invalid_argument("frame: blob_bytes is " + std::to_string(blob_bytes_) + ", more than " +
                            std::to_string(limits_.blob_bytes));
  }
  return {};
}

Result<void> FrameDecoder::feed(std::span<const char> bytes, std::vector<Frame>& frames) {
  while (true) {
    if (header_filled_ < kFrameHeaderBytes) {
      const std::size_t count = std::min(kFrameHeaderBytes - header_filled_, bytes.size());
      std::memcpy(header_ + header_filled_, bytes.data(), count);
      header_filled_ += count;
      bytes = bytes.subspan(count);
      if (header_filled_ < kFrameHeaderBytes) return {};
      SLUICE_TRY_VOID(read_header());
    }
    move_bytes(frame_.json, json_bytes_, bytes);
    if (frame_.json.size() == json_bytes_) move_bytes(frame_.blob, blob_bytes_, bytes);
    if (frame_.json.size() < json_bytes_ || frame_.blob.size() < blob_bytes_) return {};
    frames.push_back(std::exchange(frame_, {}));
    header_filled_ = 0;
    if (bytes.empty()) return {};
  }
}

Result<std::size_t> send_some(int socket, std::span<const char> bytes, int passed_fd) {
  iovec vector{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (passed_fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &passed_fd, sizeof(int));
  }
  while (true) {
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<std::size_t>(sent);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    if (errno == EPIPE || errno == ECONNRESET) return unavailable("the peer closed the socket");
    return errno_error("sendmsg");
  }
}

Result<std::size_t> receive_some(int socket, std::span<char> bytes, UniqueFd& passed_fd) {
  iovec vector{bytes.data(), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t count = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0) {
    if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    if (errno == ECONNRESET) return unavailable("the peer closed the socket");
    return errno_error("recvmsg");
  }
  if (count == 0) return unavailable("the peer closed the socket");
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    // Alignment leaves room for two where we asked for one; a descriptor that we did not own would stay open for ever.
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= header->cmsg_len; at += sizeof(int)) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(header) + at, sizeof(int));
      passed_fd.reset(received);
    }
  }
  return static_cast<std::size_t>(count);
}

FrameSocket::FrameSocket(UniqueFd fd, FrameLimits limits) : fd_(std::move(fd)), decoder_(limits) {}

Result<void> FrameSocket::send(std::string_view json, std::string_view blob, Deadline deadline, int passed_fd) {
  const std::string head = frame_head(json, blob.size());
  for (std::span<const char> part : {std::span<const char>(head), std::span<const char>(blob.data(), blob.size())}) {
    while (!part.empty()) {
      SLUICE_TRY(const std::size_t sent, send_some(fd_.get(), part, passed_fd));
      if (sent > 0) passed_fd = -1;
      part = part.subspan(sent);
      if (part.empty() || sent > 0) continue;
      SLUICE_TRY(const bool writable, wait_socket(fd_.get(), POLLOUT, deadline, {}));
      if (!writable) return Error(ErrorCode::kDeadlineExceeded, "the peer does not read its socket");
    }
  }
  return {};
}

Result<void> FrameSocket::read_some() {
  char buffer[kReadBytes];
  SLUICE_TRY(const std::size_t count, receive_some(fd_.get(), buffer, passed_fd_));
  return decoder_.feed({buffer, count}, ready_);
}

Result<Frame> FrameSocket::receive(Deadline deadline, const std::stop_token& stop) {
  while (next_ready_ == ready_.size()) {
    ready_.clear();
    next_ready_ = 0;
    SLUICE_TRY(const bool readable, wait_socket(fd_.get(), POLLIN, deadline, stop));
    if (!readable) return Error(ErrorCode::kDeadlineExceeded, "no frame arrived in time");
    SLUICE_TRY_VOID(read_some());
  }
  return std::move(ready_[next_ready_++]);
}

}  // namespace sluice::transport
