#include "src/transport/grpc_message.h"

#include <rapidcheck.h>

#include <random>

#include "src/base/testing/catch.h"

namespace sluice::transport {
namespace {

v1::Header request_header() {
  v1::Header header;
  header.mutable_request()->set_id(7);
  for (int i = 0; i < 100; ++i) header.mutable_request()->mutable_batch()->add_indices(i * i);
  return header;
}

// A message as another program would make it.
grpc::ByteBuffer raw(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

TEST_CASE("header and payload come back, and the payload starts at a multiple of 64") {
  auto payload = std::make_shared<const std::string>(100000, 'x');
  const grpc::ByteBuffer buffer = encode_message(request_header(), std::as_bytes(std::span(*payload)), payload);
  const auto message = decode_message(buffer);
  REQUIRE(message.ok());
  CHECK(message->header.SerializeAsString() == request_header().SerializeAsString());
  CHECK(message->payload.text() == *payload);
  CHECK((buffer.Length() - payload->size()) % 64 == 0);
}

TEST_CASE("the payload is referred to, not copied, and released once") {
  auto payload = std::make_shared<const std::string>(100000, 'x');
  const std::weak_ptr<const std::string> alive = payload;
  {
    const grpc::ByteBuffer buffer = encode_message(request_header(), std::as_bytes(std::span(*payload)), payload);
    const char* data = payload->data();
    payload.reset();
    CHECK(!alive.expired());
    std::vector<grpc::Slice> slices;
    REQUIRE(buffer.Dump(&slices).ok());
    CHECK(reinterpret_cast<const char*>(slices.at(1).begin()) == data);
  }
  CHECK(alive.expired());
}

TEST_CASE("a message without payload is one slice") {
  const auto message = decode_message(encode_message(request_header(), {}, nullptr));
  REQUIRE(message.ok());
  CHECK(message->payload.bytes() == 0);
}

TEST_CASE("a damaged message is an error, not a crash") {
  struct Case {
    const char* name;
    std::string bytes;
  };
  const Case cases[] = {
      {"empty", ""},
      {"shorter than its length", std::string("\x01\x00", 2)},
      {"header longer than the message", std::string("\xff\x00\x00\x00", 4) + "abc"},
      {"header of four gigabytes", std::string(4, '\xff') + std::string(100, 'x')},
      {"header that is no protobuf", std::string("\x04\x00\x00\x00", 4) + "\xff\xff\xff\xff"},
  };
  for (const Case& test : cases) {
    INFO(test.name);
    const auto message = decode_message(raw(test.bytes));
    REQUIRE(!message.ok());
    CHECK(message.error().code() == ErrorCode::kDataLoss);
  }
}

std::string bytes_of(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  REQUIRE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

TEST_CASE("every prefix of a message is an error or a message with less payload") {
  const auto payload = std::make_shared<const std::string>(300, 'x');
  const std::string whole = bytes_of(encode_message(request_header(), std::as_bytes(std::span(*payload)), payload));
  const std::size_t header_end = 4 + request_header().ByteSizeLong();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    INFO("prefix of " << length << " bytes");
    const auto message = decode_message(raw(whole.substr(0, length)));
    REQUIRE(message.ok() == (length >= header_end));
    if (!message.ok()) continue;
    CHECK(message->header.request().batch().indices_size() == 100);
    const std::size_t padded_end = whole.size() - payload->size();
    CHECK(message->payload.bytes() == (length > padded_end ? length - padded_end : 0));
  }
}

TEST_CASE("a message is the same however gRPC cuts it", "[property]") {
  const auto payload = std::make_shared<const std::string>([] {
    std::string bytes(500, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
    return bytes;
  }());
  const std::string whole = bytes_of(encode_message(request_header(), std::as_bytes(std::span(*payload)), payload));
  const bool held = rc::check("cut at random places", [&] {
    std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
    std::vector<grpc::Slice> slices;
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t bytes = random() % (whole.size() - at + 1);
      slices.emplace_back(whole.substr(at, bytes));
      at += bytes;
    }
    const auto message = decode_message(grpc::ByteBuffer(slices.data(), slices.size()));
    RC_ASSERT(message.ok());
    RC_ASSERT(message->header.SerializeAsString() == request_header().SerializeAsString());
    RC_ASSERT(message->payload.text() == *payload);
  });
  CHECK(held);
}

TEST_CASE("noise is an error or some message, never a crash", "[property]") {
  const bool held = rc::check("decode noise", [] {
    std::string bytes = *rc::gen::arbitrary<std::string>();
    if (bytes.size() >= 4) {  // a length that may fit, or nothing but the length check would be seen
      bytes[0] = static_cast<char>(*rc::gen::inRange<std::size_t>(0, bytes.size()));
      bytes[1] = bytes[2] = bytes[3] = 0;
    }
    const auto message = decode_message(raw(bytes));
    if (message.ok())
      RC_ASSERT(message->payload.bytes() <= bytes.size());
    else
      RC_ASSERT(message.error().code() == ErrorCode::kDataLoss);
  });
  CHECK(held);
}

TEST_CASE("a header without padding after it is accepted") {
  const std::string header = request_header().SerializeAsString();
  std::string bytes(4, '\0');
  bytes[0] = static_cast<char>(header.size() & 0xFF);
  bytes[1] = static_cast<char>(header.size() >> 8);
  const auto message = decode_message(raw(bytes + header));
  REQUIRE(message.ok());
  CHECK(message->header.request().id() == 7);
}

TEST_CASE("writes go out one at a time, in order") {
  std::vector<const grpc::ByteBuffer*> started;
  WriteQueue queue([&](const grpc::ByteBuffer* message) { started.push_back(message); });
  for (int i = 0; i < 3; ++i) queue.push(raw(std::string(10 + i, 'x')));
  CHECK(started.size() == 1);
  CHECK(!queue.written(true));
  CHECK(started.size() == 2);
  CHECK(started.back()->Length() == 11);
  SECTION("closing lets what is queued out, and tells after the last") {
    CHECK(!queue.close_after_sending());
    queue.push(raw("too late"));
    CHECK(!queue.written(true));
    CHECK(queue.written(true));
    CHECK(started.size() == 3);
  }
  SECTION("a failed write ends it") {
    CHECK(!queue.written(false));
    queue.push(raw("too late"));
    CHECK(started.size() == 2);
  }
  SECTION("aborting starts nothing more, and the write in progress still ends") {
    queue.abort();
    CHECK(!queue.written(true));
    CHECK(started.size() == 2);
  }
}

TEST_CASE("an idle queue closes at once") {
  WriteQueue queue([](const grpc::ByteBuffer*) {});
  CHECK(queue.close_after_sending());
}

}  // namespace
}  // namespace sluice::transport
