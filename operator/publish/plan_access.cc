#include "operator/publish/plan_access.h"

#include <utility>

namespace sluice::control {
namespace {

constexpr auto kBelievedFor = std::chrono::minutes(1);
constexpr std::size_t kMostKnown = 64;
constexpr std::size_t kLongestToken = 8192;  // those of the API server have about one thousand bytes

}  // namespace

PlanAccess::PlanAccess(std::string reader, Review review, const Clock& clock)
    : reader_(std::move(reader)),
      review_(std::move(review)),
      clock_(clock),
      reviews_{kReviewsPerSecond, kReviewsPerSecond * kBurstSeconds, clock.now()},
      questions_{kQuestionsPerSecond, kQuestionsPerSecond * kBurstSeconds, clock.now()} {}

Result<void> PlanAccess::admit(const std::string& token) {
  const Error too_many(ErrorCode::kResourceExhausted, "too many questions: ask again in a second");
  if (token.empty() || token.size() > kLongestToken)
    return Error(ErrorCode::kUnauthenticated, "ask with kubectl sluice plan, which shows a token of " + reader_);
  const Clock::TimePoint now = clock_.now();
  std::erase_if(known_until_, [&](const auto& entry) { return entry.second <= now; });
  if (!known_until_.contains(token)) {
    if (!reviews_.take(now)) return too_many;
    SLUICE_TRY(const std::string user, review_(token));
    if (user != reader_)
      return Error(ErrorCode::kPermissionDenied, "the token is of " + user + "; the plan is read as " + reader_);
    if (known_until_.size() >= kMostKnown) known_until_.clear();
    known_until_[token] = now + kBelievedFor;
  }
  if (!questions_.take(now)) return too_many;
  return {};
}

}  // namespace sluice::control
