#include "src/http/transport.h"

#include "src/base/testing/catch.h"

namespace sluice::http {

TEST_CASE("header names compare without regard to case") {
  Headers headers{{"Content-Type", "a"}};
  headers.insert_or_assign("content-type", std::string("b"));
  CHECK(headers.size() == 1);
  CHECK(headers.find("CONTENT-TYPE")->second == "b");
  CHECK(headers.find("Content") == headers.end());
}

TEST_CASE("percent encoding leaves unreserved characters alone and nothing else") {
  CHECK(percent_encode("aZ09-._~") == "aZ09-._~");
  CHECK(percent_encode("a/b c=d,e&f") == "a%2Fb%20c%3Dd%2Ce%26f");
  CHECK(percent_encode("\xC3\xA4") == "%C3%A4");
  CHECK(percent_encode("").empty());
}

TEST_CASE("only 2xx is success") {
  CHECK(Response{200}.succeeded());
  CHECK(Response{299}.succeeded());
  CHECK_FALSE(Response{199}.succeeded());
  CHECK_FALSE(Response{304}.succeeded());
}

}  // namespace sluice::http
