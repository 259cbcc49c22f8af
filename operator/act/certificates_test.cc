#include "operator/act/certificates.h"

#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>

#include "src/base/testing/catch.h"

namespace sluice::act {
namespace {

const auto kToday = std::chrono::system_clock::now();

struct CertificateFree {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using Certificate = std::unique_ptr<X509, CertificateFree>;

Certificate parse(const std::string& pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  Certificate certificate(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
  BIO_free(bio);
  return certificate;
}

// Verifies `leaf` against the only trusted `authority`, for use as `purpose`.
bool verifies(X509* leaf, X509* authority, int purpose, const char* host) {
  X509_STORE* store = X509_STORE_new();
  X509_STORE_add_cert(store, authority);
  X509_STORE_CTX* context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, leaf, nullptr);
  X509_STORE_CTX_set_purpose(context, purpose);
  X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(context), host, 0);
  const bool ok = X509_verify_cert(context) == 1;
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  return ok;
}

TEST_CASE("both ends of a job's connections verify against the job's own authority") {
  const auto identity = make_tls_identity("vision", "worker.sluice.internal", kToday);
  REQUIRE(identity.ok());
  const Certificate authority = parse(identity->authority_certificate);
  const Certificate leaf = parse(identity->certificate);
  REQUIRE(authority);
  REQUIRE(leaf);
  CHECK(verifies(leaf.get(), authority.get(), X509_PURPOSE_SSL_SERVER, "worker.sluice.internal"));
  CHECK(verifies(leaf.get(), authority.get(), X509_PURPOSE_SSL_CLIENT, "worker.sluice.internal"));
  CHECK_FALSE(verifies(leaf.get(), authority.get(), X509_PURPOSE_SSL_SERVER, "other.example"));
}

TEST_CASE("another job's certificate is refused") {
  const auto mine = make_tls_identity("mine", "worker.sluice.internal", kToday);
  const auto theirs = make_tls_identity("theirs", "worker.sluice.internal", kToday);
  REQUIRE(mine.ok());
  REQUIRE(theirs.ok());
  CHECK_FALSE(verifies(parse(theirs->certificate).get(), parse(mine->authority_certificate).get(),
                       X509_PURPOSE_SSL_CLIENT, "worker.sluice.internal"));
  CHECK(mine->private_key != theirs->private_key);
}

TEST_CASE("the private key belongs to the leaf and is unencrypted PKCS 8") {
  const auto identity = make_tls_identity("vision", "worker.sluice.internal", kToday);
  REQUIRE(identity.ok());
  CHECK(identity->private_key.rfind("-----BEGIN PRIVATE KEY-----", 0) == 0);
  BIO* bio = BIO_new_mem_buf(identity->private_key.data(), static_cast<int>(identity->private_key.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  REQUIRE(key != nullptr);
  CHECK(X509_check_private_key(parse(identity->certificate).get(), key) == 1);
  EVP_PKEY_free(key);
}

TEST_CASE("a job's name longer than a common name may be is cut, not refused") {
  CHECK(make_tls_identity(std::string(100, 'j'), "worker.sluice.internal", kToday).ok());
}

}  // namespace
}  // namespace sluice::act
