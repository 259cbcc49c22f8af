#include "operator/api/fingerprint.h"

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "src/kube/json_text.h"

namespace sluice::api {

std::string fingerprint(const nlohmann::json& value) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char byte : kube::text_of(value)) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace sluice::api
