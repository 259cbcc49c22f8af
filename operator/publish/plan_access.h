// Access to the page "/plan": it takes a token for the service account of the configuration (plan.reader),
// issued for the audience kPlanAudience. The right to have such a token issued is a matter of RBAC, on
// serviceaccounts/token; the token is good for nothing else. The API server checks it (TokenReview).
//
// A token that was good is believed for a minute. The load that strangers can cause is bounded: kReviewsPerSecond
// requests to the API server and kQuestionsPerSecond pages; more is refused. Thread safety: admit() from one thread at
// a time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "src/base/clock.h"
#include "src/base/rate_limit.h"
#include "src/base/result.h"

namespace sluice::control {

inline constexpr std::string_view kPlanAudience = "sluice-plan";
inline constexpr double kReviewsPerSecond = 2;
inline constexpr double kQuestionsPerSecond = 5;
inline constexpr double kBurstSeconds = 5;  // of either

class PlanAccess {
 public:
  // The user that a token for `audience` stands for: "system:serviceaccount:sluice-system:sluice-plan-reader".
  // Errors: Unauthenticated for a token that is none, or none for this audience.
  using Review = std::function<Result<std::string>(const std::string& token)>;

  // REQUIRES: the clock outlives the object.
  PlanAccess(std::string reader, Review review, const Clock& clock);

  // Errors: Unauthenticated, PermissionDenied for another user's token, ResourceExhausted, or the review's own.
  Result<void> admit(const std::string& token);

 private:
  const std::string reader_;
  const Review review_;
  const Clock& clock_;
  RateLimit reviews_;
  RateLimit questions_;
  std::map<std::string, Clock::TimePoint> known_until_;
};

}  // namespace sluice::control
