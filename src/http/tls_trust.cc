#include "src/http/tls_trust.h"

#include <utility>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

namespace sluice::http {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio reader(const std::string& pem) { return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free}; }

Certificate next_certificate(BIO* bio) {
  // The callback keeps OpenSSL from asking the terminal for a passphrase.
  return {PEM_read_bio_X509(
              bio, nullptr, [](char*, int, int, void*) { return 0; }, nullptr),
          &X509_free};
}

bool trust_only(SSL_CTX* context, const std::string& ca_pem) {
  X509_STORE* store = X509_STORE_new();
  if (store == nullptr) return false;
  SSL_CTX_set_cert_store(context, store);  // takes ownership, frees the old one with the system's authorities
  const Bio bio = reader(ca_pem);
  int count = 0;
  while (const Certificate authority = next_certificate(bio.get())) {
    if (X509_STORE_add_cert(store, authority.get()) != 1) return false;
    ++count;
  }
  ERR_clear_error();  // the end of the PEM text is an error to OpenSSL
  return count > 0;
}

bool identify(SSL_CTX* context, const std::string& certificate_pem, const std::string& key_pem) {
  const Bio certificates = reader(certificate_pem);
  const Certificate leaf = next_certificate(certificates.get());
  if (!leaf || SSL_CTX_use_certificate(context, leaf.get()) != 1) return false;
  while (const Certificate issuer = next_certificate(certificates.get())) {
    if (SSL_CTX_add1_chain_cert(context, issuer.get()) != 1) return false;
  }
  ERR_clear_error();
  const Bio key_bio = reader(key_pem);
  const Key key{PEM_read_bio_PrivateKey(
                    key_bio.get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr),
                &EVP_PKEY_free};
  return key && SSL_CTX_use_PrivateKey(context, key.get()) == 1 && SSL_CTX_check_private_key(context) == 1;
}

}  // namespace

TlsTrust::TlsTrust(const Endpoint& endpoint, std::string name)
    : ca_pem_(endpoint.ca_pem),
      certificate_pem_(endpoint.client_certificate_pem),
      key_pem_(endpoint.client_key_pem),
      name_(std::move(name)) {}

Result<std::shared_ptr<const TlsTrust>> TlsTrust::create(const Endpoint& endpoint, const std::string& host) {
  std::shared_ptr<const TlsTrust> trust(
      new TlsTrust(endpoint, endpoint.server_name.empty() ? host : endpoint.server_name));
  // A trial run finds unusable certificates now, with their names, and not as a handshake failure later.
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> trial(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  if (!trial) return internal_error("OpenSSL cannot make a TLS context");
  if (!endpoint.ca_pem.empty() && !trust_only(trial.get(), endpoint.ca_pem)) {
    return invalid_argument("the certificate authority of " + endpoint.base_url + " is no PEM certificate");
  }
  if (endpoint.client_certificate_pem.empty() != endpoint.client_key_pem.empty()) {
    return invalid_argument("a client certificate and its key for " + endpoint.base_url + " are needed together");
  }
  if (!trust->install(trial.get())) {
    ERR_clear_error();
    return invalid_argument("the client certificate for " + endpoint.base_url + " cannot be used with its key");
  }
  return trust;
}

bool TlsTrust::install(SSL_CTX* context) const {
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) return false;
  if (!ca_pem_.empty() && !trust_only(context, ca_pem_)) return false;
  if (!certificate_pem_.empty() && !identify(context, certificate_pem_, key_pem_)) return false;
  SSL_CTX_set_cert_verify_callback(context, &TlsTrust::verify, const_cast<TlsTrust*>(this));
  return true;
}

int TlsTrust::verify(X509_STORE_CTX* chain, void* trust) {
  const std::string& name = static_cast<const TlsTrust*>(trust)->name_;
  X509_VERIFY_PARAM* expected = X509_STORE_CTX_get0_param(chain);
  X509_VERIFY_PARAM_set_hostflags(expected, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // An address is looked for among the certificate's addresses only, as RFC 6125 wants.
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) != 1) {
    ERR_clear_error();
    if (X509_VERIFY_PARAM_set1_host(expected, name.c_str(), name.size()) != 1) return 0;
  }
  // The connection's own callback could only weaken or duplicate this check: OpenSSL's verdict stands.
  X509_STORE_CTX_set_verify_cb(chain, [](int ok, X509_STORE_CTX*) { return ok; });
  return X509_verify_cert(chain);
}

}  // namespace sluice::http
