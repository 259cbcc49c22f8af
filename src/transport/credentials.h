// The identity of one end of a feeder-worker connection: mutual TLS with the job's own authority, or none at all.
//
// Submitting a pipeline to a worker is running code there: only holders of a certificate of the job's authority may.
// The operator renews a job's certificates while feeder and workers run. A connection shows and trusts what the files
// held when it began; those that were made before go on.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "src/base/result.h"

namespace sluice::transport {

// What every worker's certificate is issued for; addresses are pod IPs and say nothing.
inline constexpr const char* kWorkerServerName = "worker.sluice.internal";

struct TlsMaterial {
  std::string authority;    // PEM: one, or several while they change
  std::string certificate;  // PEM
  std::string key;          // PEM

  bool operator==(const TlsMaterial&) const = default;
};

// Thread safety: all methods may be called from any thread. Copies share the files.
class Credentials {
 public:
  // In the clear.
  Credentials() = default;
  // Always the same. Implicit: where credentials are asked for, these are some.
  Credentials(TlsMaterial material);  // NOLINT(google-explicit-constructor)

  bool encrypted() const { return files_ != nullptr; }

  // For a connection that begins now. New files that cannot be read, or whose key is not the certificate's, are logged
  // once, and those before stay in use. REQUIRES: encrypted().
  TlsMaterial now() const;

  // When the certificate of now() ends; none in the clear, or where it is damaged.
  std::optional<std::chrono::system_clock::time_point> expires() const;

 private:
  friend Result<Credentials> read_credentials(const std::string& directory, bool insecure);
  struct Files;
  std::shared_ptr<Files> files_;
};

// `directory` holds ca.crt, tls.crt and tls.key. With `insecure`, no files are read.
// Errors: InvalidArgument unless exactly one of the two is given; NotFound, PermissionDenied naming the file.
Result<Credentials> read_credentials(const std::string& directory, bool insecure);

}  // namespace sluice::transport
