// The TLS identity of one TrainingJob: a certificate authority of its own and one leaf that its feeder and its workers
// share. Only a holder of the job's Secret can submit code to its workers or answer its feeder.
//
// EC P-256. The authority's key is dropped after it has signed the leaf: nothing can be issued later.
// Thread safety: pure apart from OpenSSL's random numbers; may be called from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "src/base/result.h"

namespace sluice::act {

// PEM. The private key must never be logged.
struct TlsIdentity {
  std::string authority_certificate;  // ca.crt
  std::string certificate;            // tls.crt
  std::string private_key;            // tls.key
};

// Random numbers are injected: makes the identity of the job named, valid from now on.
using IdentitySource = std::function<Result<TlsIdentity>(const std::string& job)>;

inline constexpr std::chrono::hours kCertificateLife{90 * 24};
// Clocks differ between nodes, by hours where one has the time of another zone: a certificate is valid from so long
// before it was made.
inline constexpr std::chrono::hours kBackdated{24};

// `server_name` becomes the leaf's common name and only subject alternative name. Valid until kCertificateLife after
// `now`; certificate_rotation.h makes the next one before.
Result<TlsIdentity> make_tls_identity(std::string_view job, std::string_view server_name,
                                      std::chrono::system_clock::time_point now);

struct Validity {
  std::chrono::system_clock::time_point from;
  std::chrono::system_clock::time_point until;
};

// Of the first certificate in `pem`. Errors: InvalidArgument for a text that holds none.
Result<Validity> validity_of(std::string_view pem);

}  // namespace sluice::act
