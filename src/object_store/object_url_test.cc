#include "src/object_store/object_url.h"

#include "src/base/testing/catch.h"

namespace sluice::object_store {
namespace {

TEST_CASE("where an object is asked for") {
  const std::tuple<const char*, std::string, Environment, const char*, const char*> cases[] = {
      {"by the name of the bucket", "s3://b/a=1/k.tar", {}, "https b.s3.us-east-1.amazonaws.com 443", "/a%3D1/k.tar"},
      {"a bucket with dots",
       "S3://b.c/k",
       {{"AWS_DEFAULT_REGION", "eu-west-1"}},
       "https s3.eu-west-1.amazonaws.com 443",
       "/b.c/k"},
      {"another endpoint",
       "s3://b/k?x#y",
       {{"AWS_ENDPOINT_URL", "http://h:9000/sub/"}},
       "http h:9000 9000",
       "/sub/b/k%3Fx%23y"},
      {"that of S3 first",
       "s3://b/k",
       {{"AWS_ENDPOINT_URL", "http://h"}, {"AWS_ENDPOINT_URL_S3", "http://i"}},
       "http i 80",
       "/b/k"},
      {"a plain URL", "https://h/p%20q?a=b#c", {{"AWS_ENDPOINT_URL", "http://other"}}, "https h 443", "/p%20q?a=b"},
      {"an address of version 6", "http://[::1]:81/k", {}, "http [::1]:81 81", "/k"},
  };
  for (const auto& [name, url, environment, store, path] : cases) {
    CAPTURE(name);
    const auto target = target_of(url, environment);
    REQUIRE(target.ok());
    CHECK((target->is_tls ? "https " : "http ") + target->authority + " " + target->port() == store);
    CHECK(target->path == path);
    CHECK(target->region.empty() == (url.substr(0, 2) != "s3" && url.substr(0, 2) != "S3"));
  }
  CHECK(target_of("http://[::1]:81/k", {})->host() == "::1");
  CHECK(target_of("http://h:81/k", {})->host() == "h");
}

TEST_CASE("what names no object is refused, and no secret is told") {
  for (const char* url :
       {"s3://bucket", "s3:///k", "https://host/", "http://me:secret@host/path", "https://host/a b?secret",
        "https://host\r\nX: secret/path", "ftp://host/path", "/a/file", "", "https://:80/path"}) {
    CAPTURE(url);
    const auto target = target_of(url, {});
    REQUIRE_FALSE(target.ok());
    CHECK(target.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(target.error().message(), !Catch::Contains("secret@") && !Catch::Contains("?secret"));
  }
  CHECK_FALSE(target_of("s3://b/k", {{"AWS_ENDPOINT_URL", "h:9000"}}).ok());
}

TEST_CASE("a redirect leads to another place, and never away from TLS") {
  const Target from{true, "h:1", "/a", ""};
  CHECK(redirected(from, "/b?c")->authority == "h:1");
  CHECK(redirected(from, "/b?c")->path == "/b?c");
  CHECK(redirected(from, "//i/b")->authority == "i");
  CHECK(redirected(from, "https://i/b")->is_tls);
  CHECK_THAT(redirected(from, "http://i/b?secret").error().message(),
             Catch::Contains("h:1 redirects to http://i/b, without TLS"));
  CHECK(redirected({false, "h", "/a", ""}, "http://i/b").ok());
  for (const char* location : {"", "b", "s3://b/k", "https://i"}) CHECK_FALSE(redirected(from, location).ok());
}

}  // namespace
}  // namespace sluice::object_store
