#include "src/base/checksum.h"

#include <vector>

#include "src/base/testing/catch.h"

namespace sluice {
namespace {

TEST_CASE("the checksums are those of libxxhash's XXH64") {
  struct Case {
    std::size_t bytes;
    std::uint64_t expected;
  };
  const Case cases[] = {{0, 0xEF46DB3751D8E999},   {1, 0x8A4127811B21E730},  {3, 0x31D2363F52E564C9},
                        {4, 0xB4D516AF63F9C743},   {7, 0x2163DF11C0CDF8CD},  {8, 0xD5474D6CA50DEF58},
                        {31, 0xC025B4C3C4880C7A},  {32, 0x178AE25CEE6F7994}, {33, 0x4072A28263E977EF},
                        {63, 0x47948108B5FF3162},  {64, 0xCF35552F599BA94D}, {100, 0x3A7FDC0FEBF6F5DC},
                        {1000, 0x958E6485B0AF5378}};
  for (const Case& c : cases) {
    std::vector<std::uint8_t> bytes(c.bytes);
    for (std::size_t i = 0; i < c.bytes; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + c.bytes);
    INFO(c.bytes);
    CHECK(checksum(bytes) == c.expected);
  }
}

TEST_CASE("a hash has sixteen hexadecimal digits") {
  CHECK(hexadecimal(0) == "0000000000000000");
  CHECK(hexadecimal(0x0123456789ABCDEF) == "0123456789abcdef");
  CHECK(hexadecimal(~0ULL) == "ffffffffffffffff");
}

}  // namespace
}  // namespace sluice
