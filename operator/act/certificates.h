// The TLS identity of one TrainingJob: a certificate authority of its own and one leaf that its feeder and its workers
// share. Whoever does not hold the job's Secret can neither submit code to its workers nor answer its feeder.
//
// EC P-256. The authority's key is dropped after it has signed the leaf: nothing can be issued later.
// Thread safety: pure apart from OpenSSL's random numbers; may be called from any thread.
#pragma once

#include <chrono>
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

// `server_name` becomes the leaf's common name and only subject alternative name. Valid from one hour before `now`
// (clocks differ between nodes) for ten years: jobs end before, and nothing rotates it.
Result<TlsIdentity> make_tls_identity(std::string_view job, std::string_view server_name,
                                      std::chrono::system_clock::time_point now);

}  // namespace sluice::act
