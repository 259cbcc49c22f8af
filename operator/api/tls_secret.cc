#include "operator/api/tls_secret.h"

#include <openssl/evp.h>

#include <utility>

namespace sluice::api {

using nlohmann::json;

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

TlsEntries TlsSecret::entries() const {
  return {text(kAuthoritiesEntry), text(kCertificateEntry), text(kPrivateKeyEntry), text(kNextCertificateEntry),
          text(kNextPrivateKeyEntry)};
}

const json& TlsSecret::encoded_entries() const { return member(object(), "data"); }

json patch_of_cache_authorities(const std::string& authorities) {
  return {{"stringData", {{std::string(kCacheAuthoritiesEntry), authorities}}}};
}

json patch_of(const TlsEntries& entries) {
  const std::pair<std::string_view, const std::string*> texts[] = {{kAuthoritiesEntry, &entries.authorities},
                                                                   {kCertificateEntry, &entries.certificate},
                                                                   {kPrivateKeyEntry, &entries.private_key},
                                                                   {kNextCertificateEntry, &entries.next_certificate},
                                                                   {kNextPrivateKeyEntry, &entries.next_private_key}};
  json patch = json::object();
  for (const auto& [entry, text] : texts)
    text->empty() ? patch["data"][std::string(entry)] = nullptr : patch["stringData"][std::string(entry)] = *text;
  return patch;
}

TlsSecretDraft::TlsSecretDraft(std::string_view name_space, std::string_view name)
    : ObjectDraft(kube::kSecrets, name_space, name) {
  part("type") = "kubernetes.io/tls";
}

void TlsSecretDraft::set_entries(const TlsEntries& entries) { part("stringData") = patch_of(entries)["stringData"]; }

}  // namespace sluice::api
