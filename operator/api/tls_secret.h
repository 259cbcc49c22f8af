// The Secret with a TrainingJob's certificates. The files of its feeder and workers have the names of its entries.
#pragma once

#include <string>
#include <string_view>

#include "operator/api/object_draft.h"

namespace sluice::api {

inline constexpr std::string_view kAuthoritiesEntry = "ca.crt";
inline constexpr std::string_view kCertificateEntry = "tls.crt";
inline constexpr std::string_view kPrivateKeyEntry = "tls.key";
// What both ends will show, once all of them trust its authority.
inline constexpr std::string_view kNextCertificateEntry = "next.crt";
inline constexpr std::string_view kNextPrivateKeyEntry = "next.key";
// Those that the certificates of the nodes' caches are checked by; only where there are such.
inline constexpr std::string_view kCacheAuthoritiesEntry = "cache-ca.crt";

// What such a Secret holds, PEM. Empty: it has no such entry.
struct TlsEntries {
  std::string authorities;       // ca.crt: one, or two while they change
  std::string certificate;       // tls.crt
  std::string private_key;       // tls.key
  std::string next_certificate;  // next.crt
  std::string next_private_key;  // next.key
};

// Thread safety, missing fields: as Object.
class TlsSecret : public Object {
 public:
  using Object::Object;

  bool immutable() const;
  // The text that the entry's base64 stands for; empty where it is damaged.
  std::string text(std::string_view entry) const;
  TlsEntries entries() const;
  const nlohmann::json& encoded_entries() const;
};

// The merge patch that gives a Secret this one, beside all that it has.
nlohmann::json patch_of_cache_authorities(const std::string& authorities);

// The merge patch that gives a Secret these entries and takes out those that are empty.
nlohmann::json patch_of(const TlsEntries& entries);

// Thread safety: none; one owner.
class TlsSecretDraft : public ObjectDraft {
 public:
  TlsSecretDraft(std::string_view name_space, std::string_view name);

  void set_entries(const TlsEntries& entries);
  void set_cache_authorities(const std::string& authorities) {
    part("stringData")[std::string(kCacheAuthoritiesEntry)] = authorities;
  }
  void restore_entries(const TlsSecret& lost) { part("data") = lost.encoded_entries(); }
};

}  // namespace sluice::api
