#include "src/transport/frame.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <thread>

#include "src/base/testing/catch.h"

namespace sluice::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

FrameSocket::Deadline in(milliseconds duration) { return std::chrono::steady_clock::now() + duration; }

std::pair<UniqueFd, UniqueFd> socket_pair() {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::span<const char> span_of(const std::string& text) { return {text.data(), text.size()}; }

TEST_CASE("the header is two little-endian sizes") {
  const std::string bytes = encode_frame("{}", "blob!");
  REQUIRE(bytes.substr(0, 8) == std::string("\x02\0\0\0\x05\0\0\0", 8));
  REQUIRE(bytes.substr(8) == "{}blob!");
}

TEST_CASE("frames survive a cut at every byte") {
  const std::string stream = encode_frame(R"({"type":"a"})", "0123456789") + encode_frame("{}") +
                             encode_frame("", "only a blob") + encode_frame("") + encode_frame(R"({"z":1})", "x");
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    FrameDecoder decoder;
    std::vector<Frame> frames;
    REQUIRE(decoder.feed(span_of(stream).first(cut), frames).ok());
    REQUIRE(decoder.feed(span_of(stream).subspan(cut), frames).ok());
    REQUIRE(frames.size() == 5);
    CHECK(frames[0].json == R"({"type":"a"})");
    CHECK(frames[0].blob == "0123456789");
    CHECK(frames[2].blob == "only a blob");
    CHECK(frames[3].json.empty());
    CHECK(frames[4].blob == "x");
    CHECK(decoder.idle());
  }
}

TEST_CASE("frames survive byte by byte delivery") {
  const std::string stream = encode_frame("abc", "defg") + encode_frame("h");
  FrameDecoder decoder;
  std::vector<Frame> frames;
  for (const char& byte : stream) REQUIRE(decoder.feed({&byte, 1}, frames).ok());
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].blob == "defg");
  CHECK(frames[1].json == "h");
}

TEST_CASE("a frame above its limit is refused from the header alone") {
  struct Case {
    const char* name;
    std::size_t json;
    std::size_t blob;
    const char* want;
  };
  const Case cases[] = {
      {"json one byte too long", 17, 0, "json_bytes"},
      {"blob one byte too long", 1, 33, "blob_bytes"},
      {"all ones", 0xFFFFFFFF, 0xFFFFFFFF, "json_bytes"},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    std::string header = frame_head("", test.blob);
    for (int byte = 0; byte < 4; ++byte) header[byte] = static_cast<char>(test.json >> (8 * byte));
    FrameDecoder decoder({.json_bytes = 16, .blob_bytes = 32});
    std::vector<Frame> frames;
    const auto result = decoder.feed(span_of(header), frames);
    REQUIRE(!result.ok());
    CHECK_THAT(result.error().message(), Catch::Contains(test.want));
  }
}

TEST_CASE("a frame at its limit is accepted") {
  FrameDecoder decoder({.json_bytes = 3, .blob_bytes = 4});
  std::vector<Frame> frames;
  REQUIRE(decoder.feed(span_of(encode_frame("abc", "defg")), frames).ok());
  CHECK(frames.size() == 1);
}

TEST_CASE("a descriptor travels with the first byte of its frame") {
  auto [left, right] = socket_pair();
  FrameSocket sender(std::move(left));
  FrameSocket receiver(std::move(right));
  UniqueFd memory(::memfd_create("frame_test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(memory.get(), 12345) == 0);
  REQUIRE(sender.send("{}", "", in(seconds(5)), memory.get()).ok());
  const auto frame = receiver.receive(in(seconds(5)));
  REQUIRE(frame.ok());
  UniqueFd passed = receiver.take_passed_fd();
  REQUIRE(passed.valid());
  CHECK(::lseek(passed.get(), 0, SEEK_END) == 12345);
}

TEST_CASE("a blob larger than the socket's buffers arrives whole") {
  auto [left, right] = socket_pair();
  FrameSocket sender(std::move(left));
  FrameSocket receiver(std::move(right));
  std::string blob(std::size_t{5} << 20, '\0');
  for (std::size_t i = 0; i < blob.size(); ++i) blob[i] = static_cast<char>(i * 31 >> 3);
  bool sent = false;
  std::jthread thread([&] { sent = sender.send("{}", blob, in(seconds(30))).ok(); });
  const auto frame = receiver.receive(in(seconds(30)));
  thread.join();
  REQUIRE(sent);
  REQUIRE(frame.ok());
  CHECK(frame->blob == blob);
}

TEST_CASE("waiting for a frame ends") {
  auto [left, right] = socket_pair();
  FrameSocket receiver(std::move(right));
  SECTION("at its deadline") {
    CHECK(receiver.receive(in(milliseconds(1))).error().code() == ErrorCode::kDeadlineExceeded);
  }
  SECTION("when stopped") {
    std::stop_source stop;
    std::jthread thread([&] { stop.request_stop(); });
    CHECK(receiver.receive(in(seconds(60)), stop.get_token()).error().code() == ErrorCode::kCancelled);
  }
  SECTION("when the peer closes") {
    left.reset();
    CHECK(receiver.receive(in(seconds(60))).error().code() == ErrorCode::kUnavailable);
  }
}

TEST_CASE("a peer that does not read cannot block the sender for ever") {
  auto [left, right] = socket_pair();
  FrameSocket sender(std::move(left));
  const std::string blob(std::size_t{4} << 20, 'x');
  CHECK(sender.send("{}", blob, in(milliseconds(20))).error().code() == ErrorCode::kDeadlineExceeded);
}

TEST_CASE("sending to a closed peer is an error, not a signal") {
  auto [left, right] = socket_pair();
  FrameSocket sender(std::move(left));
  right.reset();
  CHECK(sender.send("{}", "", in(seconds(5))).error().code() == ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace sluice::transport
