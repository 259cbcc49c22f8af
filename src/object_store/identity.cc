#include "src/object_store/identity.h"

#include "src/object_store/shared_credentials.h"

namespace sluice::object_store {
namespace {

constexpr double kRenewedAfter = 0.8;                         // of what they last
constexpr Clock::Duration kPause = std::chrono::seconds(30);  // between attempts to renew what is still good

}  // namespace

const Environment& environment_of(const pipeline::ObjectAccess& access) {
  static const Environment kNone;
  return access.environment == nullptr ? kNone : *access.environment;
}

void Identity::credentials(const std::shared_ptr<const Environment>& environment, const Credentials* refused,
                           const Told& told) {
  if (environment == nullptr) return told(std::optional<Credentials>());
  const std::string key_id = first_of(*environment, {"AWS_ACCESS_KEY_ID"});
  const std::string secret = first_of(*environment, {"AWS_SECRET_ACCESS_KEY"});
  if (!key_id.empty() && !secret.empty())
    return told(std::optional(Credentials{key_id, secret, first_of(*environment, {"AWS_SESSION_TOKEN"})}));
  if (const auto role = role_of(*environment)) return borrow(*role, refused, told);
  if (const std::string file = first_of(*environment, {"AWS_SHARED_CREDENTIALS_FILE"}); !file.empty()) {
    if (const auto text = read_text_(file); text.ok()) {
      const std::string profile = first_of(*environment, {"AWS_PROFILE"});
      const auto found = credentials_in(*text, profile.empty() ? "default" : profile);
      if (!found.ok()) return told(invalid_argument(file + " is no file of credentials"));
      if (*found) return told(*found);
    }
  }
  if (const auto agent = agent_of(*environment)) return borrow(*agent, refused, told);
  told(std::optional<Credentials>());
}

void Identity::borrow(const Lender& lender, const Credentials* refused, const Told& told) {
  if (!accounts_.contains(lender) && accounts_.size() >= kLendersMost)
    std::erase_if(accounts_, [](const auto& entry) { return entry.second.waiting.empty(); });
  Account& account = accounts_[lender];
  const auto now = clock_.wall_now();
  const bool is_good =
      account.lent && now < account.lent->ends_at && (refused == nullptr || !(account.lent->credentials == *refused));
  if (is_good && now < account.renewed_at) return told(std::optional(account.lent->credentials));
  if (!account.waiting.empty()) {
    account.waiting.push_back(told);
    return;
  }
  if (is_good) {
    // What is there is good for a while: no request waits for the new one.
    account.renewed_at = now + std::chrono::duration_cast<std::chrono::system_clock::duration>(kPause);
    account.waiting.emplace_back([](const auto&) {});
    told(std::optional(account.lent->credentials));
  } else {
    account.lent.reset();
    account.waiting.push_back(told);
  }
  ask(lender);
}

void Identity::ask(const Lender& lender) {
  const auto request = request_to(lender, read_text_);
  if (!request.ok()) return settle(lender, request.error());
  network_.ask(*request, [this, lender](const Result<HttpAnswer>& answer) { answered(lender, answer); });
}

void Identity::answered(const Lender& lender, const Result<HttpAnswer>& answer) {
  if (!answer.ok()) return settle(lender, answer.error().with_context(lender.in_words() + " cannot be asked"));
  settle(lender, lent_by(lender, *answer));
}

void Identity::settle(const Lender& lender, const Result<Lent>& lent) {
  Account& account = accounts_[lender];
  if (lent.ok()) {
    const auto now = clock_.wall_now();
    account.lent = *lent;
    account.renewed_at =
        now + std::chrono::duration_cast<Clock::WallTimePoint::duration>(kRenewedAfter * (lent->ends_at - now));
  }
  const auto waiting = std::exchange(account.waiting, {});
  for (const Told& told : waiting) {
    if (lent.ok())
      told(std::optional(lent->credentials));
    else
      told(lent.error());
  }
}

}  // namespace sluice::object_store
