#include "src/transport/payload.h"

#include <rapidcheck.h>

#include <numeric>

#include "src/base/testing/catch.h"

namespace sluice::transport {
namespace {

// The bytes 0, 1, 2, ... cut into pieces of the given sizes.
Payload cut(const std::vector<std::size_t>& sizes) {
  const std::size_t total = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(total);
  std::iota(bytes->begin(), bytes->end(), std::uint8_t{0});
  std::vector<Payload::Piece> pieces;
  std::size_t offset = 0;
  for (const std::size_t size : sizes) {
    pieces.emplace_back(bytes->data() + offset, size);
    offset += size;
  }
  return {std::move(pieces), bytes};
}

TEST_CASE("a range within one piece is given in place") {
  const Payload payload = cut({4, 8, 4});
  std::vector<std::uint8_t> scratch;
  const auto range = payload.contiguous(5, 6, scratch);
  CHECK(range[0] == 5);
  CHECK(range.size() == 6);
  CHECK(scratch.empty());
}

TEST_CASE("a range over several pieces is put together") {
  const Payload payload = cut({4, 1, 0, 2, 9});
  std::vector<std::uint8_t> scratch;
  const auto range = payload.contiguous(2, 8, scratch);
  REQUIRE(range.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(range[i] == 2 + i);
  CHECK(range.data() == scratch.data());
}

TEST_CASE("nothing is a range, too, wherever it lies") {
  const Payload payload = cut({4, 0, 4});
  std::vector<std::uint8_t> scratch;
  for (const std::size_t offset : {0, 3, 4, 8}) {
    INFO(offset);
    CHECK(payload.contiguous(offset, 0, scratch).empty());
    payload.copy_to(offset, {});
  }
  CHECK(Payload().bytes() == 0);
  CHECK(Payload().text().empty());
  CHECK(Payload().contiguous(0, 0, scratch).empty());
}

TEST_CASE("the bytes live as long as the last payload that refers to them") {
  auto bytes = std::make_shared<std::vector<std::uint8_t>>(std::vector<std::uint8_t>{1, 2, 3});
  const std::weak_ptr<std::vector<std::uint8_t>> alive = bytes;
  auto first = std::make_unique<Payload>(std::vector<Payload::Piece>{{bytes->data(), 3}}, bytes);
  bytes.reset();
  const auto second = std::make_unique<Payload>(*first);
  first.reset();
  CHECK(second->text() == "\x01\x02\x03");
  CHECK(!alive.expired());
}

TEST_CASE("any cut gives the same bytes", "[property]") {
  const bool held = rc::check("copy_to and contiguous", [] {
    const auto sizes = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 40));
    const Payload payload = cut(sizes);
    const std::size_t offset = *rc::gen::inRange<std::size_t>(0, payload.bytes() + 1);
    const std::size_t count = *rc::gen::inRange<std::size_t>(0, payload.bytes() - offset + 1);
    std::vector<std::uint8_t> copied(count), scratch;
    payload.copy_to(offset, copied);
    const auto range = payload.contiguous(offset, count, scratch);
    for (std::size_t i = 0; i < count; ++i) {
      RC_ASSERT(copied[i] == static_cast<std::uint8_t>(offset + i));
      RC_ASSERT(range[i] == copied[i]);
    }
  });
  CHECK(held);
}

}  // namespace
}  // namespace sluice::transport
