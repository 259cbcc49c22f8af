#include "operator/act/certificate_rotation.h"

#include <algorithm>

namespace sluice::act {
namespace {

constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";

// The authority that was added last has issued the present certificate.
std::string present_authority(const std::string& authorities) {
  const std::size_t begin = authorities.rfind(kBegin);
  return begin == std::string::npos ? "" : authorities.substr(begin);
}

}  // namespace

std::chrono::system_clock::time_point rotates_at(const TlsEntries& entries) {
  const auto present = validity_of(entries.certificate);
  if (!present.ok()) return std::chrono::system_clock::time_point::min();
  if (const auto next = validity_of(entries.next_certificate); next.ok())  // once it is trusted everywhere
    return std::min(next->from + kBackdated + kPropagation, present->until - kWrongClock);
  return present->until - (present->until - present->from) / kRenewedAtLifeLeft;
}

Result<std::optional<TlsEntries>> rotate(const TlsEntries& entries, const std::string& job,
                                         std::chrono::system_clock::time_point now,
                                         const IdentitySource& make_identity) {
  if (now < rotates_at(entries)) return std::optional<TlsEntries>();
  if (!validity_of(entries.certificate).ok()) {
    SLUICE_TRY(const TlsIdentity fresh, make_identity(job));
    return std::optional(TlsEntries{fresh.authority_certificate, fresh.certificate, fresh.private_key, "", ""});
  }
  if (validity_of(entries.next_certificate).ok())
    return std::optional(TlsEntries{entries.authorities, entries.next_certificate, entries.next_private_key, "", ""});
  SLUICE_TRY(const TlsIdentity next, make_identity(job));
  return std::optional(TlsEntries{present_authority(entries.authorities) + next.authority_certificate,
                                  entries.certificate, entries.private_key, next.certificate, next.private_key});
}

}  // namespace sluice::act
