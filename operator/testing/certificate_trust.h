// Whether one end of a connection takes the other's certificate.
#pragma once

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>

#include <chrono>
#include <memory>
#include <string>

namespace sluice::control::testing {

// Any of `authorities` (PEM) has issued `certificate` (PEM), and both are valid at that time.
inline bool trusts(const std::string& authorities, const std::string& certificate,
                   std::chrono::system_clock::time_point now) {
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(), X509_STORE_free);
  const auto each = [](const std::string& pem, const auto& use) {
    const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                            BIO_free_all);
    while (X509* found = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
      use(found);
      X509_free(found);
    }
    ERR_clear_error();
  };
  each(authorities, [&](X509* authority) { X509_STORE_add_cert(store.get(), authority); });
  bool trusted = false;
  each(certificate, [&](X509* leaf) {
    const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(X509_STORE_CTX_new(),
                                                                                  X509_STORE_CTX_free);
    X509_STORE_CTX_init(context.get(), store.get(), leaf, nullptr);
    X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()), std::chrono::system_clock::to_time_t(now));
    trusted = X509_verify_cert(context.get()) == 1;
  });
  return trusted;
}

}  // namespace sluice::control::testing
