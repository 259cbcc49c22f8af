// Who lends credentials to a pod, what it is asked, and what its answer means.
//
// A role: the token of the pod's service account buys a session (STS, AssumeRoleWithWebIdentity). An agent of the node
// (EKS Pod Identity, ECS) hands credentials out, for a token or without.
// Thread safety: pure functions and values.
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <string>

#include "src/object_store/network.h"

namespace sluice::object_store {

// The text of a small file. The error's message names it.
using ReadText = std::function<Result<std::string>(const std::string& path)>;

// The disk's, 64 KiB of each file at most.
ReadText read_text_of_disk();

// All that its answer depends on but the content of files.
struct Lender {
  enum class Kind { kRole, kAgent } kind = Kind::kRole;
  std::string url;
  std::string token_file;
  std::string role;     // kRole
  std::string session;  // kRole
  std::string token;    // kAgent, where there is no file; for no message
  Trust trust;

  // For people: "sts.eu-west-1.amazonaws.com, for role NAME,".
  std::string in_words() const;

  friend auto operator<=>(const Lender&, const Lender&) = default;
};

// Those that the environment names.
std::optional<Lender> role_of(const Environment& environment);
std::optional<Lender> agent_of(const Environment& environment);

struct Lent {
  Credentials credentials;
  Clock::WallTimePoint ends_at;
};

// PermissionDenied: its token cannot be read. InvalidArgument: it cannot be asked, as it is no address, or one of
// another machine without TLS.
Result<HttpRequest> request_to(const Lender& lender, const ReadText& read_text);

// Unavailable: another attempt may help. PermissionDenied: it refuses, or its answer has no credentials.
Result<Lent> lent_by(const Lender& lender, const HttpAnswer& answer);

}  // namespace sluice::object_store
