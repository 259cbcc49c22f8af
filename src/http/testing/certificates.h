// Throw-away certificate authorities, made in memory.
#pragma once

#include <memory>
#include <string>

namespace sluice::http::testing {

struct Identity {
  std::string certificate_pem;
  std::string key_pem;
};

// Thread safety: none.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& common_name);
  ~CertificateAuthority();

  const std::string& certificate_pem() const { return certificate_pem_; }

  // A certificate for an hour. `subject_alternative_names` in OpenSSL's notation: "DNS:a.example,IP:127.0.0.1"; empty
  // for a client.
  Identity issue(const std::string& common_name, const std::string& subject_alternative_names) const;

 private:
  struct Keys;
  std::unique_ptr<Keys> keys_;
  std::string certificate_pem_;
};

}  // namespace sluice::http::testing
