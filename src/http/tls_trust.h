// A TLS client's trusted authorities and its own identity, put into OpenSSL contexts.
// Thread safety: install() may be called from any thread; the object must outlive every context it was installed in.
#pragma once

#include <memory>
#include <string>

#include <openssl/ssl.h>

#include "src/base/result.h"
#include "src/http/transport.h"

namespace sluice::http {

class TlsTrust {
 public:
  // `host` (a name, or an IP address without brackets) is the name that the certificate must carry if the endpoint has
  // no server_name. Errors: InvalidArgument naming the PEM field that cannot be used.
  static Result<std::shared_ptr<const TlsTrust>> create(const Endpoint& endpoint, const std::string& host);

  // TLS 1.2 or later; only the endpoint's authorities if it has any (the context's own are dropped); its client
  // certificate. Chain and name are verified even if the caller sets a callback on the connection. Returns whether
  // OpenSSL accepted everything.
  bool install(SSL_CTX* context) const;

 private:
  TlsTrust(const Endpoint& endpoint, std::string name);
  static int verify(X509_STORE_CTX* chain, void* trust);

  std::string ca_pem_;
  std::string certificate_pem_;
  std::string key_pem_;
  std::string name_;
};

}  // namespace sluice::http
