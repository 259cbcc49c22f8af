#include "src/object_store/sigv4.h"

#include <algorithm>

#include "src/base/testing/catch.h"

namespace sluice::object_store {
namespace {

std::string value_of(const Headers& headers, std::string_view name) {
  const auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& one) { return one.first == name; });
  return found == headers.end() ? "" : found->second;
}

// 2013-05-24T00:00:00Z, of the published examples.
const Clock::WallTimePoint kMoment{std::chrono::seconds(1369353600)};
const Credentials kPublished{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""};
constexpr std::string_view kNoBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

TEST_CASE("the published example of a GET of a range") {
  const Headers headers =
      signed_headers("/test.txt", {{"Host", "examplebucket.s3.amazonaws.com"}, {"Range", "bytes=0-9"}}, kPublished,
                     "us-east-1", kMoment, kNoBody);
  CHECK(value_of(headers, "x-amz-date") == "20130524T000000Z");
  CHECK(value_of(headers, "Authorization") ==
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_CASE("a token is signed, too; blanks of a value and the case of a name do not count") {
  const auto signature = [](const Headers& headers, const std::string& token) {
    return value_of(signed_headers("/k", headers, {"id", "secret", token}, "r", kMoment), "Authorization");
  };
  const std::string plain = signature({{"Host", "h"}, {"A", "b c"}}, "t");
  CHECK_THAT(plain, Catch::Contains("SignedHeaders=a;host;x-amz-content-sha256;x-amz-date;x-amz-security-token"));
  CHECK(signature({{"host", "h"}, {"a", "  b   c "}}, "t") == plain);
  CHECK(signature({{"Host", "h"}, {"A", "b c"}}, "other") != plain);
  CHECK_THAT(plain, !Catch::Contains("secret,"));
}

}  // namespace
}  // namespace sluice::object_store
