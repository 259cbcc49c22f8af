#include "src/transport/credentials.h"

#include <cerrno>
#include <fstream>
#include <sstream>

namespace sluice::transport {
namespace {

Result<std::string> read_file(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) {
    if (errno == 0) errno = EIO;
    return errno_error("reading " + path);
  }
  return text.str();
}

}  // namespace

Result<Credentials> read_credentials(const std::string& directory, bool insecure) {
  if (insecure && !directory.empty()) return invalid_argument("--insecure and --tls-dir exclude each other");
  if (insecure) return Credentials();
  if (directory.empty()) return invalid_argument("--tls-dir is missing (or say --insecure)");
  TlsMaterial material;
  SLUICE_TRY(material.authority, read_file(directory + "/ca.crt"));
  SLUICE_TRY(material.certificate, read_file(directory + "/tls.crt"));
  SLUICE_TRY(material.key, read_file(directory + "/tls.key"));
  return Credentials(std::move(material));
}

}  // namespace sluice::transport
