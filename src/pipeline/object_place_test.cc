#include "src/pipeline/object_place.h"

#include "src/base/testing/catch.h"
#include "src/pipeline/file_reader.h"

namespace sluice::pipeline {
namespace {

TEST_CASE("what people and caches see of a URL") {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"https://h/k.tar?versionId=3&X-Amz-Signature=abc&Expires=12", "https://h/k.tar", "https://h/k.tar?versionId=3"},
      {"https://me:secret@h/k?x-goog-date=1&AWSAccessKeyId=2&Signature=3", "https://h/k", "https://h/k"},
      {"https://h/k?a=1&&signatures=2#part", "https://h/k", "https://h/k?a=1&signatures=2"},
      {"s3://b/k?x#y", "s3://b/k", "s3://b/k?x#y"},
      {"/data/a.tar", "/data/a.tar", "/data/a.tar"},
  };
  for (const auto& [url, shown, lasting] : cases) {
    CAPTURE(url);
    CHECK(shown_url(url) == shown);
    CHECK(lasting_url(url) == lasting);
  }
}

TEST_CASE("which paths are objects") {
  for (const char* path : {"s3://b/k", "HTTPS://h/k", "http://h/k"}) CHECK(is_object_url(path));
  for (const char* path : {"/data/a.tar", "", "ftp://h/k", "s3:/b", "https", "/s3://b/k"})
    CHECK_FALSE(is_object_url(path));
}

FilePart part_of(std::string url, const char* etag, ObjectEnvironment environment = {}) {
  return {
      std::move(url), {100, 10, 1000, 7}, {etag, std::make_shared<const ObjectEnvironment>(std::move(environment))}};
}

TEST_CASE("an object is known by its place, its size and its ETag, without a look at it") {
  const auto identity = part_of("https://h/k?X-Amz-Signature=a", "\"e\"").object_identity();
  REQUIRE(identity);
  CHECK(identity->bytes == 1000);
  CHECK(identity->modified_ns == 7);
  CHECK(identity == part_of("https://h/k?X-Amz-Signature=b", "\"e\"").object_identity());
  CHECK(identity != part_of("https://h/l", "\"e\"").object_identity());
  const auto in_bucket = [](const char* endpoint) {
    return part_of("s3://b/k", "\"e\"", {{"AWS_ENDPOINT_URL", endpoint}}).object_identity();
  };
  CHECK(in_bucket("http://one") != in_bucket("http://other"));
  CHECK(in_bucket("http://one") == in_bucket("http://one"));
  for (const char* etag : {"W/\"e\"", "Thu, 26 Nov 2026 08:00:00 GMT", "", "\""})
    CHECK_FALSE(part_of("s3://b/k", etag).object_identity());
  CHECK_FALSE(FilePart("/data/a.jpg").object_identity());
}

TEST_CASE("a part's name holds no signature, and a reader of files opens no URL") {
  const FilePart part = part_of("https://h/k?X-Amz-Signature=secret", "\"e\"");
  CHECK(part.name() == "https://h/k at 100");
  std::vector<std::uint8_t> bytes;
  const auto read = make_system_file_reader()->read(part, bytes);
  CHECK(read.error().code() == ErrorCode::kInternal);
  CHECK_THAT(read.error().message(), !Catch::Contains("secret"));
}

}  // namespace
}  // namespace sluice::pipeline
