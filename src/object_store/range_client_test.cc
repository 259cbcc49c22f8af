#include "src/object_store/range_client.h"

#include "src/base/testing/catch.h"
#include "src/object_store/testing/scripted_client.h"

namespace sluice::object_store {
namespace {

using testing::Outcome;
using testing::ScriptedClient;

TEST_CASE("a range is asked for under its condition, and comes") {
  ScriptedClient site;
  Outcome outcome;
  site.get(site.range(), outcome);
  REQUIRE(site.network->pending.size() == 1);
  const HttpRequest& request = site.network->pending[0].request;
  const Headers want{{"Host", "h"}, {"Accept-Encoding", "identity"}, {"Range", "bytes=0-3"}, {"If-Match", "\"e\""}};
  CHECK(request.headers == want);
  CHECK(request.target.path == "/k?X-Amz-Signature=secret");
  CHECK(request.answer_bytes_max == kRefusalBytesMost);
  site.network->answer(ScriptedClient::good());
  REQUIRE(outcome);
  CHECK(**outcome == RangeClient::Bytes{7, 7, 7, 7});
}

TEST_CASE("a weak ETag is sent as no condition") {
  ScriptedClient site;
  Outcome outcome;
  ObjectRange range = site.range();
  range.access.etag = "W/\"e\"";
  site.get(range, outcome);
  for (const auto& [name, value] : site.network->pending[0].request.headers) CHECK(name != "If-Match");
}

TEST_CASE("what may pass is tried again behind random pauses that double, ten times") {
  ScriptedClient site;
  Outcome outcome;
  site.get(site.range(), outcome);
  std::vector<double> pauses;
  for (int attempt = 1; attempt <= kAttemptsMost; ++attempt) {
    REQUIRE(site.network->pending.size() == 1);
    REQUIRE_FALSE(outcome);
    if (attempt % 2 == 0)
      site.network->answer(ScriptedClient::refusal(503));
    else
      site.network->answer(unavailable("the connection is lost"));
    if (attempt < kAttemptsMost) pauses.push_back(site.network->pass());
  }
  const std::vector<double> want{0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10};
  REQUIRE(pauses.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(pauses[i] == Approx(want[i]));
  REQUIRE(outcome);
  CHECK(outcome->error().code() == ErrorCode::kUnavailable);
  CHECK(outcome->error().message() ==
        "https://h/k, bytes 0 to 4: not read in 10 attempts: 503 No (5 times), the connection is lost (5 times)");
  CHECK(site.network->pending.empty());
}

TEST_CASE("a store's own pause is kept where it is longer, up to a bound") {
  const std::tuple<const char*, double> cases[] = {{"0", 0.05}, {"7", 7}, {"99999", 30}};
  for (const auto& [text, want] : cases) {
    CAPTURE(text);
    ScriptedClient site;
    Outcome outcome;
    site.get(site.range(), outcome);
    site.network->answer(ScriptedClient::refusal(503, {{"Retry-After", text}}));
    CHECK(site.network->pass() == Approx(want));
    site.network->answer(ScriptedClient::good());
    CHECK(outcome->ok());
  }
}

TEST_CASE("an object that has changed is an error at once, with its range and without its query") {
  ScriptedClient site;
  Outcome outcome;
  site.get(site.range(), outcome);
  site.network->answer(ScriptedClient::refusal(412));
  REQUIRE(outcome);
  CHECK(outcome->error().code() == ErrorCode::kDataLoss);
  CHECK(outcome->error().message() ==
        "https://h/k, bytes 0 to 4: has changed since its index was made: make the data set anew");
}

TEST_CASE("a plain URL is followed through redirects, a few") {
  ScriptedClient site;
  Outcome outcome;
  site.get(site.range(), outcome);
  for (int i = 0; i < kRedirectsMost; ++i) {
    site.network->answer(ScriptedClient::refusal(302, {{"Location", "https://i/" + std::to_string(i)}}));
    REQUIRE(site.network->pending.size() == 1);
    CHECK(site.network->pending[0].request.target.authority == "i");
    CHECK(site.network->pending[0].request.headers[0].second == "i");
  }
  site.network->answer(ScriptedClient::refusal(302, {{"Location", "/again"}}));
  REQUIRE(outcome);
  CHECK_THAT(outcome->error().message(), Catch::Contains("more than 3 redirects"));
}

TEST_CASE("a bucket is asked for with a signature; expired credentials are shown once") {
  ScriptedClient site;
  *site.environment = {{"AWS_ACCESS_KEY_ID", "ID"}, {"AWS_SECRET_ACCESS_KEY", "very-secret"}, {"AWS_REGION", "eu-1"}};
  Outcome outcome;
  site.get(site.range(4, "s3://b/k"), outcome);
  const HttpRequest& request = site.network->pending.at(0).request;
  CHECK(request.target.authority == "b.s3.eu-1.amazonaws.com");
  CHECK_THAT(request.headers.back().second, Catch::Contains("Credential=ID/20260101/eu-1/s3/aws4_request"));
  HttpAnswer expired = ScriptedClient::refusal(400);
  const std::string_view body = "<Code>ExpiredToken</Code>";
  expired.body.assign(body.begin(), body.end());
  site.network->answer(expired);
  REQUIRE(outcome);
  CHECK(outcome->error().code() == ErrorCode::kPermissionDenied);
  CHECK_THAT(outcome->error().message(),
             Catch::Contains("credentials have expired") && !Catch::Contains("very-secret"));
}

TEST_CASE("requests in flight grow with answers, and fall once a second when the store says so") {
  ScriptedClient site;
  std::vector<Outcome> outcomes(2000);
  for (Outcome& outcome : outcomes) site.get(site.range(), outcome);
  CHECK(site.network->pending.size() == 16);
  for (int i = 0; i < 16; ++i) site.network->answer(ScriptedClient::good());
  CHECK(site.network->pending.size() == 32);
  for (int i = 0; i < 300; ++i) site.network->answer(ScriptedClient::good());
  CHECK(site.network->pending.size() == Pace::kRequestsMost);
  for (int i = 0; i < 200; ++i)
    site.network->answer(i % 20 == 0 ? ScriptedClient::refusal(503) : ScriptedClient::good());
  CHECK(site.client.pace().limit() == Pace::kRequestsMost);  // a few refusals are none of too much
  for (int i = 0; i < 10; ++i) site.network->answer(ScriptedClient::refusal(429));
  CHECK(site.client.pace().limit() == 192);
  site.clock.advance(std::chrono::seconds(1));
  site.network->answer(ScriptedClient::refusal(503));
  CHECK(site.client.pace().limit() == 144);
  for (int i = 0; i < 150; ++i) site.network->answer(ScriptedClient::good());
  CHECK(site.client.pace().limit() == Approx(145).margin(0.5));
}

TEST_CASE("bytes in flight are bounded, but for a range that is larger than the bound") {
  ScriptedClient site;
  std::vector<Outcome> outcomes(4);
  site.get(site.range(Pace::kBytesMost + 1), outcomes[0]);
  site.get(site.range(Pace::kBytesMost / 2), outcomes[1]);
  CHECK(site.network->pending.size() == 1);
  site.network->answer(ScriptedClient::refusal(404));
  CHECK(site.network->pending.size() == 1);
  site.get(site.range(Pace::kBytesMost / 2 + 1), outcomes[2]);
  CHECK(site.network->pending.size() == 1);
  site.get(site.range(Pace::kBytesMost / 2), outcomes[3], /*is_urgent=*/true);
  CHECK(site.network->pending.size() == 2);
}

TEST_CASE("what is not wanted any more is not asked for") {
  ScriptedClient site;
  std::vector<Outcome> outcomes(17);
  for (std::size_t i = 0; i < 16; ++i) site.get(site.range(), outcomes[i]);
  bool is_wanted = true;
  site.client.get(
      {site.range(), false, [&] { return is_wanted; }, [&](auto bytes) { outcomes[16] = std::move(bytes); }});
  site.network->run();
  is_wanted = false;
  for (std::size_t i = 0; i < 16; ++i) site.network->answer(ScriptedClient::good());
  CHECK(site.network->pending.empty());
  CHECK_FALSE(outcomes[16]);
}

}  // namespace
}  // namespace sluice::object_store
