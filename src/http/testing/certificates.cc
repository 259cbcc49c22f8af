#include "src/http/testing/certificates.h"

#include <atomic>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace sluice::http::testing {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

constexpr long kValidSeconds = 3600;

Key new_key() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_X509(bio.get(), certificate);
  return text_of(bio.get());
}

std::string pem_of(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return text_of(bio.get());
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Unsigned: the caller adds extensions first.
Certificate new_certificate(const std::string& common_name, EVP_PKEY* key, X509_NAME* issuer) {
  static std::atomic<long> serial = 1;
  Certificate certificate(X509_new(), &X509_free);
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kValidSeconds);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                             -1, 0);
  X509_set_issuer_name(certificate.get(), issuer == nullptr ? name : issuer);
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

}  // namespace

struct CertificateAuthority::Keys {
  Key key{nullptr, &EVP_PKEY_free};
  Certificate certificate{nullptr, &X509_free};
};

CertificateAuthority::CertificateAuthority(const std::string& common_name) : keys_(std::make_unique<Keys>()) {
  keys_->key = new_key();
  keys_->certificate = new_certificate(common_name, keys_->key.get(), nullptr);
  X509* certificate = keys_->certificate.get();
  add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE");
  add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign");
  add_extension(certificate, certificate, NID_subject_key_identifier, "hash");
  X509_sign(certificate, keys_->key.get(), EVP_sha256());
  certificate_pem_ = pem_of(certificate);
}

CertificateAuthority::~CertificateAuthority() = default;

Identity CertificateAuthority::issue(const std::string& common_name,
                                     const std::string& subject_alternative_names) const {
  X509* issuer = keys_->certificate.get();
  const Key key = new_key();
  const Certificate certificate = new_certificate(common_name, key.get(), X509_get_subject_name(issuer));
  add_extension(certificate.get(), issuer, NID_authority_key_identifier, "keyid");
  if (!subject_alternative_names.empty()) {
    add_extension(certificate.get(), issuer, NID_subject_alt_name, subject_alternative_names);
  }
  X509_sign(certificate.get(), keys_->key.get(), EVP_sha256());
  return {pem_of(certificate.get()), pem_of(key.get())};
}

}  // namespace sluice::http::testing
