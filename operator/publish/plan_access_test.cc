#include "operator/publish/plan_access.h"

#include "src/base/testing/catch.h"
#include "src/base/testing/manual_clock.h"

namespace sluice::control {
namespace {

const std::string kReader = "system:serviceaccount:sluice-system:sluice-plan-reader";

struct Fixture {
  sluice::testing::ManualClock clock;
  int reviews = 0;
  PlanAccess access{kReader,
                    [this](const std::string& token) -> Result<std::string> {
                      ++reviews;
                      if (token == "away") return unavailable("no answer");
                      if (token.starts_with("good")) return kReader;
                      if (token == "other") return std::string("system:serviceaccount:default:trainer");
                      return Error(ErrorCode::kUnauthenticated, "not a token for this audience");
                    },
                    clock};

  ErrorCode refusal(const std::string& token) {
    const auto admitted = access.admit(token);
    REQUIRE_FALSE(admitted.ok());
    return admitted.error().code();
  }
};

TEST_CASE_METHOD(Fixture, "only a token of the reader's service account is admitted") {
  CHECK(access.admit("good").ok());
  CHECK(refusal("other") == ErrorCode::kPermissionDenied);
  CHECK(refusal("forged") == ErrorCode::kUnauthenticated);
  CHECK(refusal("away") == ErrorCode::kUnavailable);
  CHECK(reviews == 4);
  CHECK(refusal("") == ErrorCode::kUnauthenticated);
  CHECK(refusal(std::string(100'000, 'x')) == ErrorCode::kUnauthenticated);
  CHECK(reviews == 4);  // the API server is not asked about what cannot be a token
}

TEST_CASE_METHOD(Fixture, "a good token is reviewed once a minute, a bad one is never remembered") {
  for (int i = 0; i < 3; ++i) CHECK(access.admit("good").ok());
  CHECK(reviews == 1);
  clock.advance(std::chrono::seconds(60));
  CHECK(access.admit("good").ok());
  CHECK(reviews == 2);
  CHECK(refusal("other") == ErrorCode::kPermissionDenied);
  CHECK(refusal("other") == ErrorCode::kPermissionDenied);
  CHECK(reviews == 4);
}

TEST_CASE_METHOD(Fixture, "a flood of tokens costs the API server two reviews a second") {
  int asked = 0;
  for (int second = 0; second < 60; ++second, clock.advance(std::chrono::seconds(1)))
    for (int i = 0; i < 100; ++i) std::ignore = access.admit("forged-" + std::to_string(++asked));
  CHECK(reviews <= kReviewsPerSecond * (60 + kBurstSeconds));  // and not 6,000
  CHECK(reviews >= kReviewsPerSecond * 60);
  for (int i = 0; i < 100; ++i) std::ignore = access.admit("forged-" + std::to_string(++asked));
  CHECK(refusal("good") == ErrorCode::kResourceExhausted);
  clock.advance(std::chrono::seconds(1));
  CHECK(access.admit("good").ok());
}

TEST_CASE_METHOD(Fixture, "an admitted reader may ask five times a second") {
  int answered = 0;
  for (int second = 0; second < 30; ++second, clock.advance(std::chrono::seconds(1)))
    for (int i = 0; i < 50; ++i) answered += access.admit("good").ok() ? 1 : 0;
  CHECK(answered <= kQuestionsPerSecond * (30 + kBurstSeconds));
  CHECK(answered >= kQuestionsPerSecond * 30);
}

TEST_CASE_METHOD(Fixture, "few tokens are remembered, however many are good") {
  for (int i = 0; i < 200; ++i, clock.advance(std::chrono::milliseconds(500)))
    CHECK(access.admit("good-" + std::to_string(i)).ok());
  CHECK(reviews == 200);
}

}  // namespace
}  // namespace sluice::control
