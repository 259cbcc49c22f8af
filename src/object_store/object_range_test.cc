#include "src/object_store/object_range.h"

#include "src/base/testing/catch.h"

namespace sluice::object_store {
namespace {

ObjectRange range(std::uint64_t offset, std::size_t bytes, const char* etag = "\"a\"", const char* url = "s3://b/k") {
  return {url, {etag, nullptr}, std::uint64_t{1} << 40, offset, bytes};
}

TEST_CASE("neighbours are joined up to a bound, and nothing else is") {
  const std::uint64_t far = 10'000'000;
  const std::vector<ObjectRange> wanted{range(200'000, 10),
                                        range(0, 10),
                                        range(100, 10),
                                        range(far, kJoinedBytesMost),
                                        range(far + kJoinedBytesMost, 1),
                                        range(110, 10, "\"b\""),
                                        range(110, 10, "\"a\"", "s3://b/l"),
                                        range(5, 0),
                                        range(0, 10),
                                        range(2, 20)};
  const auto pieces = joined(wanted);
  const std::tuple<std::uint64_t, std::size_t, std::vector<std::size_t>> want[] = {
      {200'000, 10, {0}}, {0, 110, {1, 8, 9, 2}}, {far, kJoinedBytesMost, {3}}, {far + kJoinedBytesMost, 1, {4}},
      {110, 10, {5}},     {110, 10, {6}}};
  REQUIRE(pieces.size() == std::size(want));
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    CAPTURE(i);
    CHECK(std::tuple(pieces[i].range.offset, pieces[i].range.bytes, pieces[i].parts) == want[i]);
  }
  CHECK(joined({range(0, 1), range(1 + kGapBytes, 1)}).size() == 1);
  CHECK(joined({range(0, 1), range(2 + kGapBytes, 1)}).size() == 2);
}

TEST_CASE("whatever is joined, each part lies within its piece, once") {
  std::vector<ObjectRange> wanted;
  for (std::uint64_t i = 0; i < 500; ++i) wanted.push_back(range(i * i * 7919 % 50'000'000, i * 977 % 3'000'000));
  std::vector<int> seen(wanted.size(), 0);
  for (const auto& [piece, parts] : joined(wanted)) {
    CHECK((piece.bytes <= kJoinedBytesMost || parts.size() == 1));
    for (const std::size_t part : parts) {
      ++seen[part];
      CHECK((wanted[part].offset >= piece.offset && wanted[part].end() <= piece.end()));
    }
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(seen[i] == (wanted[i].bytes > 0 ? 1 : 0));
}

TEST_CASE("a range in words holds no query") {
  CHECK(range(512, 100, "\"a\"", "https://h/k?X-Amz-Signature=secret").in_words() == "https://h/k, bytes 512 to 612");
}

}  // namespace
}  // namespace sluice::object_store
