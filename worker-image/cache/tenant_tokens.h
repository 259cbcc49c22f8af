// Which namespace asks, by the token that its pods show.
//
// A token is a service account's, issued for the audience kTokenAudience and good for nothing else. The API server says
// whose it is (TokenReview). Its answer is believed for kBelievedFor, and a refusal for kRefusedFor. The load that
// strangers can cause is bounded: kReviewsPerSecond, kKnownMax tokens of each kind.
// Thread safety: all methods may be called from any thread.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "src/base/clock.h"
#include "src/base/rate_limit.h"
#include "src/base/result.h"

namespace sluice::node_cache {

inline constexpr const char* kTokenAudience = "sluice-cache";

class TenantTokens {
 public:
  static constexpr std::chrono::minutes kBelievedFor{1};
  static constexpr std::chrono::seconds kRefusedFor{10};
  static constexpr double kReviewsPerSecond = 20;
  static constexpr double kReviewsAtOnceMax = 100;
  static constexpr std::size_t kKnownMax = 1024;
  static constexpr std::size_t kTokenBytesMax = 8192;  // those of the API server have about one thousand

  // The user that a token stands for: "system:serviceaccount:NAMESPACE:NAME". May wait. Errors: Unauthenticated for a
  // token that is none, or none for this audience.
  using Review = std::function<Result<std::string>(const std::string& token)>;

  // REQUIRES: the clock outlives it.
  TenantTokens(Review review, const Clock& clock);

  // The namespace, or Unauthenticated, at once. nullopt: ask review().
  std::optional<Result<std::string>> known(const std::string& token);

  // The same, from the API server if it is not known. May wait. Errors: Unauthenticated; ResourceExhausted where too
  // much was asked, or the API server does not say.
  Result<std::string> review(const std::string& token);

 private:
  struct Known {
    std::string name_space;  // empty: the token is refused
    Clock::TimePoint until;
  };
  using Table = std::map<std::string, Known>;

  std::optional<Result<std::string>> look_up(const std::string& token);
  void keep(Table& table, const std::string& token, Known known) const;

  const Review review_;
  const Clock& clock_;
  std::mutex mutex_;
  Table good_;
  Table refused_;  // apart, so that no flood of strangers' tokens forgets the good ones
  RateLimit reviews_;
};

}  // namespace sluice::node_cache
