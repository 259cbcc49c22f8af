// The next certificates of a TrainingJob, before the present ones end.
//
// Kubelets bring a Secret's new files to pods at different times. So two steps, between which all pods have time to get
// the files of the first:
//
//   1  a third of the life is left: the next authority is trusted beside the present one; both ends still show the
//      present certificate. The next one waits in the Secret.
//   2  kPropagation later, or kWrongClock before the present certificate ends: both ends show the next certificate. The
//      authority before is trusted until it ends.
//
// At any time, a program with the files before a step and a program with those after it trust each other.
#pragma once

#include <optional>

#include "operator/act/certificates.h"
#include "operator/api/tls_secret.h"

namespace sluice::act {

// A third of a certificate's life.
inline constexpr int kRenewedAtLifeLeft = 3;
// A kubelet looks at its Secrets about once a minute.
inline constexpr std::chrono::hours kPropagation{1};
// The present certificate is not shown to its very end: the operator's clock may be behind those of the pods.
inline constexpr std::chrono::minutes kWrongClock{15};

using api::TlsEntries;

// From when on rotate() changes the entries: reading a certificate costs more than comparing times. The beginning of
// time where the certificate cannot be read.
std::chrono::system_clock::time_point rotates_at(const TlsEntries& entries);

// What the Secret is to hold instead; none while it may stay as it is. A Secret whose certificate cannot be read is of
// no use to any pod, and is filled anew. Errors: those of `make_identity`.
Result<std::optional<TlsEntries>> rotate(const TlsEntries& entries, const std::string& job,
                                         std::chrono::system_clock::time_point now,
                                         const IdentitySource& make_identity);

}  // namespace sluice::act
