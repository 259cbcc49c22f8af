#include "operator/api/tls_secret.h"

#include <openssl/evp.h>

#include <nlohmann/json.hpp>

namespace sluice::api {

bool TlsSecret::immutable() const { return member(object(), "immutable") == true; }

std::string TlsSecret::text(std::string_view entry) const {
  const std::string encoded = text_member(member(object(), "data"), entry);
  std::string text(encoded.size() / 4 * 3, '\0');
  const int bytes =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(encoded.data()), static_cast<int>(encoded.size()));
  if (bytes < 0) return "";
  text.resize(static_cast<std::size_t>(bytes));
  while (!text.empty() && text.back() == '\0') text.pop_back();  // of the padding; PEM has none of its own
  return text;
}

}  // namespace sluice::api
