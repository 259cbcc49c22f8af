#include "src/transport/grpc_message.h"

#include "src/base/testing/catch.h"

namespace sluice::transport {
namespace {

v1::Header request_header() {
  v1::Header header;
  header.mutable_request()->set_id(7);
  for (int i = 0; i < 100; ++i) header.mutable_request()->add_indices(i * i);
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
