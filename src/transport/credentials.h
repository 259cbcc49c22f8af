// The identity of one end of a feeder-worker connection: mutual TLS with the job's own authority, or none at all.
//
// Submitting a pipeline to a worker is running code there: only who holds a certificate of the job's authority may.
#pragma once

#include <optional>
#include <string>

#include "src/base/result.h"

namespace sluice::transport {

// What every worker's certificate is issued for; addresses are pod IPs and say nothing.
inline constexpr const char* kWorkerServerName = "worker.sluice.internal";

struct TlsMaterial {
  std::string authority;    // PEM
  std::string certificate;  // PEM
  std::string key;          // PEM
};

// nullopt: in the clear.
using Credentials = std::optional<TlsMaterial>;

// `directory` holds ca.crt, tls.crt and tls.key. With `insecure`, no files are read.
// Errors: InvalidArgument unless exactly one of the two is given; NotFound, PermissionDenied naming the file.
Result<Credentials> read_credentials(const std::string& directory, bool insecure);

}  // namespace sluice::transport
