#include "worker-image/cache/tenant_tokens.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::node_cache {
namespace {

using namespace std::chrono_literals;

struct ReviewedTokens {
  // The API server: tokens are called by what it says of them.
  Result<std::string> review(const std::string& token) {
    ++reviews;
    if (token.starts_with("of ")) return "system:serviceaccount:" + token.substr(3) + ":default";
    if (token.starts_with("user ")) return token.substr(5);
    if (token == "down") return unavailable("no connection");
    return Error(ErrorCode::kUnauthenticated, "none of ours");
  }
  ErrorCode refusal(const std::string& token) {
    const auto tenant = tokens.review(token);
    REQUIRE_FALSE(tenant.ok());
    return tenant.error().code();
  }

  sluice::testing::ManualClock clock;
  int reviews = 0;
  TenantTokens tokens{[this](const std::string& token) { return review(token); }, clock};
};

TEST_CASE("a token's namespace is asked for once a minute") {
  ReviewedTokens cache;
  CHECK_FALSE(cache.tokens.known("of team-a"));
  CHECK(*cache.tokens.review("of team-a") == "team-a");
  CHECK(**cache.tokens.known("of team-a") == "team-a");
  CHECK(*cache.tokens.review("of team-a") == "team-a");
  CHECK(*cache.tokens.review("of team-b") == "team-b");
  CHECK(cache.reviews == 2);
  cache.clock.advance(TenantTokens::kBelievedFor);
  CHECK_FALSE(cache.tokens.known("of team-a"));
  CHECK(*cache.tokens.review("of team-a") == "team-a");
  CHECK(cache.reviews == 3);
}

TEST_CASE("what is no service account's token is refused, and asked for again ten seconds later") {
  ReviewedTokens cache;
  for (const char* token :
       {"nonsense", "user admin", "user system:serviceaccount:alone", "user system:serviceaccount::x"}) {
    INFO(token);
    const int before = cache.reviews;
    CHECK_FALSE(cache.tokens.known(token));
    CHECK(cache.refusal(token) == ErrorCode::kUnauthenticated);
    CHECK(cache.tokens.known(token)->error().code() == ErrorCode::kUnauthenticated);
    CHECK(cache.refusal(token) == ErrorCode::kUnauthenticated);
    CHECK(cache.reviews == before + 1);
    cache.clock.advance(TenantTokens::kRefusedFor);
    CHECK(cache.refusal(token) == ErrorCode::kUnauthenticated);
    CHECK(cache.reviews == before + 2);
  }
  const int before = cache.reviews;
  for (const std::string& token : {std::string(), std::string(TenantTokens::kTokenBytesMax + 1, 'x')})
    CHECK(cache.tokens.known(token)->error().code() == ErrorCode::kUnauthenticated);
  CHECK(cache.reviews == before);
}

TEST_CASE("while the API server does not answer, known tokens are good and nothing is remembered of others") {
  ReviewedTokens cache;
  CHECK(cache.tokens.review("of team-a").ok());
  for (int time = 0; time < 2; ++time) {
    CHECK(cache.refusal("down") == ErrorCode::kResourceExhausted);
    CHECK_FALSE(cache.tokens.known("down"));
  }
  CHECK(**cache.tokens.known("of team-a") == "team-a");
}

TEST_CASE("a flood of tokens asks the API server no more than its bound, and forgets no good token") {
  ReviewedTokens cache;
  CHECK(cache.tokens.review("of team-a").ok());
  for (int i = 0; i < 500; ++i) static_cast<void>(cache.tokens.review("nonsense " + std::to_string(i)));
  CHECK(cache.reviews == static_cast<int>(TenantTokens::kReviewsAtOnceMax));
  CHECK(cache.refusal("of team-b") == ErrorCode::kResourceExhausted);
  for (int second = 0; second < 50; ++second) {
    cache.clock.advance(1s);
    for (int i = 0; i < 100; ++i)
      static_cast<void>(cache.tokens.review("nonsense " + std::to_string(second) + " " + std::to_string(i)));
  }
  CHECK(cache.reviews <= static_cast<int>(TenantTokens::kReviewsAtOnceMax + 50 * TenantTokens::kReviewsPerSecond));
  CHECK(**cache.tokens.known("of team-a") == "team-a");
}

}  // namespace
}  // namespace sluice::node_cache
