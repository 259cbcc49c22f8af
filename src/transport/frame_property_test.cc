// Frames that arrive damaged, cut short or from a peer that knows no frames at all.
#include <fcntl.h>
#include <rapidcheck.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstring>
#include <random>
#include <thread>

#include "src/base/testing/catch.h"
#include "src/transport/frame.h"

namespace sluice::transport {
namespace {

constexpr FrameLimits kSmall{.json_bytes = 64, .blob_bytes = 256};

std::vector<Frame> some_frames() {
  return {{R"({"type":"a"})", "0123456789"},
          {"{}", ""},
          {"", "only a blob"},
          {"", ""},
          {R"({"z":1})", std::string(200, 'x')}};
}

std::string encoded(const std::vector<Frame>& frames) {
  std::string bytes;
  for (const Frame& frame : frames) bytes += encode_frame(frame.json, frame.blob);
  return bytes;
}

bool operator==(const Frame& a, const Frame& b) { return a.json == b.json && a.blob == b.blob; }

bool is_prefix(const std::vector<Frame>& part, const std::vector<Frame>& whole) {
  return part.size() <= whole.size() &&
         std::equal(part.begin(), part.end(), whole.begin(), [](const auto& a, const auto& b) { return a == b; });
}

Frame random_frame(std::mt19937& random) {
  Frame frame{std::string(random() % (kSmall.json_bytes + 1), '\0'),
              std::string(random() % (kSmall.blob_bytes + 1), '\0')};
  for (std::string* part : {&frame.json, &frame.blob}) {
    for (char& byte : *part) byte = static_cast<char>(random());
  }
  return frame;
}

TEST_CASE("every prefix of a stream holds exactly the frames that it completes") {
  const std::vector<Frame> frames = some_frames();
  const std::string bytes = encoded(frames);
  std::vector<std::size_t> ends;
  for (std::size_t i = 1; i <= frames.size(); ++i)
    ends.push_back(encoded({frames.begin(), frames.begin() + static_cast<long>(i)}).size());
  for (std::size_t length = 0; length <= bytes.size(); ++length) {
    INFO("prefix of " << length << " bytes");
    FrameDecoder decoder(kSmall);
    std::vector<Frame> got;
    REQUIRE(decoder.feed(std::span(bytes).first(length), got).ok());
    const auto complete =
        static_cast<std::size_t>(std::count_if(ends.begin(), ends.end(), [&](auto end) { return end <= length; }));
    CHECK(got.size() == complete);
    CHECK(is_prefix(got, frames));
    // A peer that closes the socket elsewhere has sent half a frame.
    CHECK(decoder.idle() == (length == 0 || std::find(ends.begin(), ends.end(), length) != ends.end()));
  }
}

TEST_CASE("random frames survive random cuts", "[property]") {
  const bool held = rc::check("encode, cut, decode", [] {
    std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
    std::vector<Frame> frames(random() % 6);
    for (Frame& frame : frames) frame = random_frame(random);
    const std::string bytes = encoded(frames);
    FrameDecoder decoder(kSmall);
    std::vector<Frame> got;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t count = random() % (bytes.size() - at + 1);
      RC_ASSERT(decoder.feed(std::span(bytes).subspan(at, count), got).ok());
      at += count;
    }
    RC_ASSERT(got.size() == frames.size());
    RC_ASSERT(is_prefix(got, frames));
    RC_ASSERT(decoder.idle());
  });
  CHECK(held);
}

TEST_CASE("random bytes are frames within the limits, or an error", "[property]") {
  const bool held = rc::check("decode noise", [] {
    // Sizes that may pass the limits, or nothing but noise would be seen.
    const auto small = rc::gen::inRange<int>(0, 5);
    std::string bytes =
        *rc::gen::container<std::string>(rc::gen::map(small, [](int v) { return static_cast<char>(v); }));
    bytes += *rc::gen::arbitrary<std::string>();
    FrameDecoder decoder(kSmall);
    std::vector<Frame> got;
    const auto fed = decoder.feed(bytes, got);
    std::size_t consumed = 0;
    for (const Frame& frame : got) {
      RC_ASSERT(frame.json.size() <= kSmall.json_bytes);
      RC_ASSERT(frame.blob.size() <= kSmall.blob_bytes);
      consumed += kFrameHeaderBytes + frame.json.size() + frame.blob.size();
    }
    RC_ASSERT(consumed <= bytes.size());
    if (!fed.ok()) RC_ASSERT(fed.error().code() == ErrorCode::kInvalidArgument);
  });
  CHECK(held);
}

TEST_CASE("one changed byte of a header is an error, another frame, or a wait for more; never more than arrived",
          "[property]") {
  const std::string good = encode_frame(R"({"type":"a"})", "0123456789");
  for (std::size_t at = 0; at < kFrameHeaderBytes; ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(value);
      FrameDecoder decoder(kSmall);
      std::vector<Frame> got;
      (void)decoder.feed(bytes, got);
      for (const Frame& frame : got) REQUIRE(kFrameHeaderBytes + frame.json.size() + frame.blob.size() <= bytes.size());
    }
  }
}

TEST_CASE("a frame that is announced and never sent costs no memory") {
  FrameDecoder decoder;
  std::vector<Frame> got;
  std::string header = frame_head("", std::size_t{1} << 30);
  REQUIRE(decoder.feed(header, got).ok());
  REQUIRE(decoder.feed(std::string(1000, 'x'), got).ok());
  CHECK(got.empty());
  CHECK(!decoder.idle());
}

struct Pair {
  FrameSocket left, right;

  static Pair make(FrameLimits limits = {}) {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    return {FrameSocket(UniqueFd(fds[0]), limits), FrameSocket(UniqueFd(fds[1]), limits)};
  }
};

FrameSocket::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

void send_raw(FrameSocket& socket, const std::string& bytes) {
  REQUIRE(::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

TEST_CASE("a peer that says half a frame and goes is gone, whatever the half") {
  const std::string bytes = encode_frame("{}", "blob");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    INFO("after " << length << " bytes");
    Pair pair = Pair::make();
    send_raw(pair.left, bytes.substr(0, length));
    ::shutdown(pair.left.fd(), SHUT_RDWR);
    CHECK(pair.right.receive(soon()).error().code() == ErrorCode::kUnavailable);
  }
}

TEST_CASE("frames that were complete when the peer went are still received") {
  Pair pair = Pair::make();
  REQUIRE(pair.left.send("first", "", soon()).ok());
  REQUIRE(pair.left.send("second", "with a blob", soon()).ok());
  ::shutdown(pair.left.fd(), SHUT_RDWR);
  CHECK(pair.right.receive(soon())->json == "first");
  CHECK(pair.right.receive(soon())->blob == "with a blob");
  CHECK(pair.right.receive(soon()).error().code() == ErrorCode::kUnavailable);
}

TEST_CASE("a peer that breaks the limits is told apart from one that is gone") {
  Pair pair = Pair::make(kSmall);
  send_raw(pair.left, frame_head("", 257));
  const auto frame = pair.right.receive(soon());
  REQUIRE(!frame.ok());
  CHECK(frame.error().code() == ErrorCode::kInvalidArgument);
  CHECK_THAT(frame.error().message(), Catch::Contains("blob_bytes is 257, more than 256"));
}

TEST_CASE("a slow peer's frame arrives in pieces, within the deadline of the whole") {
  Pair pair = Pair::make();
  const std::string bytes = encode_frame("{}", std::string(1000, 'b'));
  std::jthread slow([&] {
    for (const char& byte : bytes) (void)!::send(pair.left.fd(), &byte, 1, MSG_NOSIGNAL);
  });
  const auto frame = pair.right.receive(soon());
  REQUIRE(frame.ok());
  CHECK(frame->blob == std::string(1000, 'b'));
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
  return count;
}

// Sends one byte that carries `fds`.
void send_fds(int socket, const std::vector<int>& fds, const char* byte) {
  iovec vector{const_cast<char*>(byte), 1};
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  REQUIRE(::sendmsg(socket, &message, MSG_NOSIGNAL) == 1);
}

// An emulator keeps those for which a message has no room.
TEST_CASE("descriptors that no message announces are closed, however many come at once", "[kernel]") {
  for (std::size_t passed = 1; passed <= 4; ++passed) {
    INFO(passed << " descriptors");
    const UniqueFd file(::memfd_create("frame_property_test", MFD_CLOEXEC));
    const int before = open_descriptors();
    {
      Pair pair = Pair::make();
      const std::string bytes = encode_frame("{}");
      send_fds(pair.left.fd(), std::vector<int>(passed, file.get()), bytes.data());
      send_raw(pair.left, bytes.substr(1));
      REQUIRE(pair.right.receive(soon()).ok());
      CHECK(open_descriptors() == before + 3);  // the pair, and the one that is kept
    }
    CHECK(open_descriptors() == before);
  }
}

TEST_CASE("a socket that takes no more says so, and nothing is lost when it does again") {
  Pair pair = Pair::make();
  std::string sent;
  while (true) {
    const std::string piece(10000, static_cast<char>('a' + sent.size() % 26));
    const auto count = send_some(pair.left.fd(), piece);
    REQUIRE(count.ok());
    sent += piece.substr(0, *count);
    if (*count == 0) break;
  }
  REQUIRE(!sent.empty());
  std::string received(sent.size(), '\0');
  REQUIRE(::recv(pair.right.fd(), received.data(), received.size(), MSG_WAITALL) == static_cast<ssize_t>(sent.size()));
  CHECK(received == sent);
  CHECK(*send_some(pair.left.fd(), std::string("again")) == 5);
}

}  // namespace
}  // namespace sluice::transport
