#include "operator/act/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

namespace sluice::act {
namespace {

constexpr long kValidSeconds = std::chrono::seconds(kCertificateLife).count();
constexpr long kBackdatedSeconds = std::chrono::seconds(kBackdated).count();
// X.509 bounds a common name to 64 bytes (ub-common-name); a job's name may be longer with our suffix.
constexpr std::size_t kMaxCommonName = 64;

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;

Error openssl_error(std::string_view what) {
  char text[256] = "unknown error";
  if (const unsigned long code = ERR_get_error(); code != 0) ERR_error_string_n(code, text, sizeof text);
  return internal_error(std::string(what) + ": " + text);
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_serial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] &= 0x7F;  // serial numbers are positive
  const std::unique_ptr<BIGNUM, Deleter<BN_free>> number(BN_bin2bn(bytes, sizeof bytes, nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// Everything that the authority and the leaf have in common. `issuer` null: self-signed.
Certificate start_certificate(EVP_PKEY* key, std::string_view name, X509* issuer, std::time_t now) {
  Certificate certificate(X509_new());
  if (!certificate) return nullptr;
  X509_set_version(certificate.get(), 2);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const std::string common_name(name.substr(0, kMaxCommonName));
  const bool ok =
      set_serial(certificate.get()) &&
      X509_time_adj_ex(X509_getm_notBefore(certificate.get()), 0, -kBackdatedSeconds, &now) != nullptr &&
      X509_time_adj_ex(X509_getm_notAfter(certificate.get()), 0, kValidSeconds, &now) != nullptr &&
      X509_set_pubkey(certificate.get(), key) == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0) == 1 &&
      X509_set_issuer_name(certificate.get(), issuer ? X509_get_subject_name(issuer) : subject) == 1;
  return ok ? std::move(certificate) : nullptr;
}

template <typename Write>
std::string to_pem(Write write) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (!bio || write(bio.get()) != 1) return {};
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string certificate_pem(X509* certificate) {
  return to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

Result<std::chrono::system_clock::time_point> time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return invalid_argument("a certificate's time cannot be read");
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

}  // namespace

Result<Validity> validity_of(std::string_view pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const Certificate certificate(bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  if (!certificate) return invalid_argument("no certificate in PEM");
  Validity validity;
  SLUICE_TRY(validity.from, time_of(X509_get0_notBefore(certificate.get())));
  SLUICE_TRY(validity.until, time_of(X509_get0_notAfter(certificate.get())));
  return validity;
}

Result<TlsIdentity> make_tls_identity(std::string_view job, std::string_view server_name,
                                      std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const Key authority_key(EVP_EC_gen("P-256"));
  const Key leaf_key(EVP_EC_gen("P-256"));
  if (!authority_key || !leaf_key) return openssl_error("generate an EC P-256 key");

  const Certificate authority = start_certificate(authority_key.get(), "sluice " + std::string(job), nullptr, seconds);
  if (!authority ||
      !add_extension(authority.get(), authority.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(authority.get(), authority.get(), NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(authority.get(), authority.get(), NID_subject_key_identifier, "hash") ||
      X509_sign(authority.get(), authority_key.get(), EVP_sha256()) == 0)
    return openssl_error("make the job's certificate authority");

  const Certificate leaf = start_certificate(leaf_key.get(), server_name, authority.get(), seconds);
  if (!leaf || !add_extension(leaf.get(), authority.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(leaf.get(), authority.get(), NID_key_usage, "critical,digitalSignature") ||
      !add_extension(leaf.get(), authority.get(), NID_ext_key_usage, "serverAuth,clientAuth") ||
      !add_extension(leaf.get(), authority.get(), NID_subject_alt_name, "DNS:" + std::string(server_name)) ||
      !add_extension(leaf.get(), authority.get(), NID_authority_key_identifier, "keyid:always") ||
      X509_sign(leaf.get(), authority_key.get(), EVP_sha256()) == 0)
    return openssl_error("make the job's certificate");

  TlsIdentity identity{certificate_pem(authority.get()), certificate_pem(leaf.get()), to_pem([&](BIO* bio) {
                         return PEM_write_bio_PKCS8PrivateKey(bio, leaf_key.get(), nullptr, nullptr, 0, nullptr,
                                                              nullptr);
                       })};
  if (identity.authority_certificate.empty() || identity.certificate.empty() || identity.private_key.empty())
    return openssl_error("write the job's certificates as PEM");
  return identity;
}

}  // namespace sluice::act
