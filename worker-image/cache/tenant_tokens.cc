#include "worker-image/cache/tenant_tokens.h"

#include <string_view>
#include <utility>

namespace sluice::node_cache {
namespace {

Error not_taken() { return {ErrorCode::kUnauthenticated, "the token is none that this cache takes"}; }

// Empty: the user is no service account.
std::string namespace_of(std::string_view user) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (!user.starts_with(kPrefix)) return "";
  user.remove_prefix(kPrefix.size());
  const std::size_t colon = user.find(':');
  return colon == std::string_view::npos ? "" : std::string(user.substr(0, colon));
}

}  // namespace

TenantTokens::TenantTokens(Review review, const Clock& clock)
    : review_(std::move(review)), clock_(clock), reviews_(kReviewsPerSecond, kReviewsAtOnceMax, clock.now()) {}

std::optional<Result<std::string>> TenantTokens::known(const std::string& token) {
  if (token.empty() || token.size() > kTokenBytesMax) return not_taken();
  std::lock_guard lock(mutex_);
  return look_up(token);
}

Result<std::string> TenantTokens::review(const std::string& token) {
  {
    std::lock_guard lock(mutex_);
    if (auto found = look_up(token)) return *std::move(found);
    if (!reviews_.take(clock_.now())) return Error(ErrorCode::kResourceExhausted, "too many new tokens");
  }
  const auto user = review_(token);
  const bool is_refused = !user.ok() && user.error().code() == ErrorCode::kUnauthenticated;
  if (!user.ok() && !is_refused)
    return Error(ErrorCode::kResourceExhausted,
                 "the API server does not say whose a token is: " + std::string(user.error().message()));
  const std::string name_space = is_refused ? "" : namespace_of(*user);
  std::lock_guard lock(mutex_);
  if (name_space.empty()) {
    keep(refused_, token, {"", clock_.now() + kRefusedFor});
    return not_taken();
  }
  keep(good_, token, {name_space, clock_.now() + kBelievedFor});
  return name_space;
}

std::optional<Result<std::string>> TenantTokens::look_up(const std::string& token) {
  for (const Table* table : {&good_, &refused_}) {
    const auto found = table->find(token);
    if (found == table->end() || found->second.until <= clock_.now()) continue;
    if (table == &refused_) return not_taken();
    return found->second.name_space;
  }
  return std::nullopt;
}

void TenantTokens::keep(Table& table, const std::string& token, Known known) const {
  const auto now = clock_.now();
  std::erase_if(table, [&](const auto& entry) { return entry.second.until <= now; });
  if (table.size() >= kKnownMax) table.clear();
  table[token] = std::move(known);
}

}  // namespace sluice::node_cache
