#include "operator/api/fingerprint.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "src/base/checksum.h"
#include "src/kube/json_text.h"

namespace sluice::api {

namespace {

std::string fingerprint_of_text(std::string_view json) {
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const char byte : json) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211u;
  return hexadecimal(hash);
}

}  // namespace

std::string fingerprint(const nlohmann::json& value) { return fingerprint_of_text(kube::text_of(value)); }

std::string fingerprint_of_array(std::initializer_list<const nlohmann::json*> values) {
  std::string text;
  for (const nlohmann::json* value : values) text += (text.empty() ? "[" : ",") + kube::text_of(*value);
  return fingerprint_of_text(text + "]");
}

}  // namespace sluice::api
