#include "src/cache/record.h"

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

const Key kKey{"place", std::string("ver\0sion", 8)};
const std::vector<std::uint8_t> kValue{1, 2, 3};

TEST_CASE("a head says what the record is of and what its value is") {
  const auto head = encode_head(kKey, kValue);
  REQUIRE(head_bytes(std::span(head).first(kFixedHeadBytes)) == head.size());
  const auto record = decode_head(head);
  REQUIRE(record);
  CHECK(record->place == kKey.place);
  CHECK(record->version == kKey.version);
  CHECK(record->value_bytes == kValue.size());
}

TEST_CASE("a head of which any bit has changed is none") {
  const auto good = encode_head(kKey, kValue);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto head = good;
    head[bit / 8] ^= static_cast<std::uint8_t>(1 << (bit % 8));
    INFO(bit);
    const auto bytes = head_bytes(std::span(head).first(kFixedHeadBytes));
    if (bytes != head.size()) continue;  // its lengths are not believed
    CHECK_FALSE(decode_head(head));
  }
}

TEST_CASE("lengths beyond the bounds are not believed") {
  for (const std::size_t at : {4, 8, 12}) {
    auto head = encode_head(kKey, kValue);
    head[at + 3] = 0xFF;
    CHECK_FALSE(head_bytes(std::span(head).first(kFixedHeadBytes)));
  }
}

}  // namespace
}  // namespace sluice::cache
