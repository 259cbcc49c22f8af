#include "src/transport/credentials.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "src/base/logging.h"

namespace sluice::transport {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;

Bio bio_of(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

Certificate parse_certificate(const std::string& pem) {
  Certificate certificate(PEM_read_bio_X509(bio_of(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

bool belong_together(const TlsMaterial& material) {
  const Certificate certificate = parse_certificate(material.certificate);
  const Key key(PEM_read_bio_PrivateKey(bio_of(material.key).get(), nullptr, nullptr, nullptr));
  const bool fits = certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return fits && parse_certificate(material.authority) != nullptr;
}

Result<std::string> read_file(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    if (errno == 0) errno = EIO;
    return errno_error("reading " + path.string());
  }
  return text.str();
}

// A kubelet replaces all files at once, by a link to another folder. All three are read from the same one.
Result<TlsMaterial> read_material(const std::filesystem::path& directory) {
  std::error_code error;
  const auto certificate = std::filesystem::canonical(directory / "tls.crt", error);
  const auto folder = error ? directory : certificate.parent_path();
  TlsMaterial material;
  SLUICE_TRY(material.authority, read_file(folder / "ca.crt"));
  SLUICE_TRY(material.certificate, read_file(folder / "tls.crt"));
  SLUICE_TRY(material.key, read_file(folder / "tls.key"));
  return material;
}

}  // namespace

struct Credentials::Files {
  std::string directory;  // empty: nothing is read again
  std::mutex mutex;
  TlsMaterial material;  // that can be used
  std::string problem;   // of the files now; as it was logged
};

Credentials::Credentials(TlsMaterial material) : files_(std::make_shared<Files>()) {
  files_->material = std::move(material);
}

TlsMaterial Credentials::now() const {
  std::lock_guard lock(files_->mutex);
  if (files_->directory.empty()) return files_->material;
  const auto read = read_material(files_->directory);
  std::string problem;
  if (!read.ok())
    problem = read.error().message();
  else if (*read != files_->material && !belong_together(*read))
    problem = files_->directory + ": certificate and key are damaged, or do not belong together";
  else
    files_->material = *read;
  if (!problem.empty() && problem != files_->problem)
    log_warning("transport", "the new TLS files cannot be used; those before stay in use", {{"problem", problem}});
  files_->problem = std::move(problem);
  return files_->material;
}

std::optional<std::chrono::system_clock::time_point> Credentials::expires() const {
  if (!encrypted()) return std::nullopt;
  const Certificate certificate = parse_certificate(now().certificate);
  std::tm parts{};
  if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &parts) != 1) return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

Result<Credentials> read_credentials(const std::string& directory, bool insecure) {
  if (insecure && !directory.empty()) return invalid_argument("--insecure and --tls-dir exclude each other");
  if (insecure) return Credentials();
  if (directory.empty()) return invalid_argument("--tls-dir is missing (or say --insecure)");
  SLUICE_TRY(TlsMaterial material, read_material(directory));
  Credentials credentials(std::move(material));
  credentials.files_->directory = directory;
  return credentials;
}

}  // namespace sluice::transport
