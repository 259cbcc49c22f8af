// By whose credentials a bucket is asked for: the first that there are, in the order of the tools of S3, as
// python/sluice/stores/object_urls.py and pod_identity.py have it. Those of the environment, of the role of the pod's
// service account, of the shared file, of an agent of the node.
//
// Lent ones are renewed at four fifths of their life, and when the store has called them expired.
// Thread safety: all on the network's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "src/object_store/lender.h"
#include "src/object_store/network.h"

namespace sluice::object_store {

const Environment& environment_of(const pipeline::ObjectAccess& access);

class Identity {
 public:
  using Told = std::function<void(const Result<std::optional<Credentials>>&)>;

  // REQUIRES: network and clock outlive this
  Identity(Network& network, const Clock& clock, ReadText read_text)
      : network_(network), clock_(clock), read_text_(std::move(read_text)) {}

  // Calls `told`, now or later; nullopt: there are none, and requests are not signed. `refused`: what the store has
  // called expired; null: nothing. Errors: Unavailable where another attempt may help; PermissionDenied;
  // InvalidArgument for a file that is none of credentials.
  void credentials(const std::shared_ptr<const Environment>& environment, const Credentials* refused, const Told& told);

 private:
  static constexpr std::size_t kLendersMost = 16;  // whose credentials are remembered
  struct Account {
    std::optional<Lent> lent;
    Clock::WallTimePoint renewed_at{};
    std::vector<Told> waiting;  // for an answer that is under way
  };

  void borrow(const Lender& lender, const Credentials* refused, const Told& told);
  void ask(const Lender& lender);
  void answered(const Lender& lender, const Result<HttpAnswer>& answer);
  void settle(const Lender& lender, const Result<Lent>& lent);

  Network& network_;
  const Clock& clock_;
  const ReadText read_text_;
  std::map<Lender, Account> accounts_;
};

}  // namespace sluice::object_store
