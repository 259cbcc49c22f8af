// The Secret with a TrainingJob's certificates. The files of its feeder and workers have the names of its entries.
#pragma once

#include <string>
#include <string_view>

#include "operator/api/object.h"

namespace sluice::api {

inline constexpr std::string_view kAuthoritiesEntry = "ca.crt";
inline constexpr std::string_view kCertificateEntry = "tls.crt";
inline constexpr std::string_view kPrivateKeyEntry = "tls.key";
// What both ends will show, once all of them trust its authority.
inline constexpr std::string_view kNextCertificateEntry = "next.crt";
inline constexpr std::string_view kNextPrivateKeyEntry = "next.key";

// Thread safety, missing fields: as Object.
class TlsSecret : public Object {
 public:
  using Object::Object;

  bool immutable() const;
  // The text that the entry's base64 stands for; empty where it is damaged.
  std::string text(std::string_view entry) const;
};

}  // namespace sluice::api
