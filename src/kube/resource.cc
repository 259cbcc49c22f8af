#include "src/kube/resource.h"

#include <nlohmann/json.hpp>

#include "src/http/transport.h"
#include "src/kube/json_member.h"

namespace sluice::kube {

std::string Resource::api_version() const {
  return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
}

std::string ObjectKey::to_string() const { return namespace_.empty() ? name : namespace_ + "/" + name; }

ObjectKey key_of(const Json& object) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return {};
  return {text_at(*metadata, "namespace"), text_at(*metadata, "name")};
}

std::string collection_path(const Resource& resource, std::string_view namespace_) {
  std::string path = (resource.group.empty() ? "/api/" : "/apis/") + resource.api_version();
  if (resource.namespaced && !namespace_.empty()) path += "/namespaces/" + http::percent_encode(namespace_);
  return path + "/" + std::string(resource.plural);
}

std::string object_path(const Resource& resource, const ObjectKey& key, std::string_view subresource) {
  std::string path = collection_path(resource, key.namespace_) + "/" + http::percent_encode(key.name);
  if (!subresource.empty()) path += "/" + std::string(subresource);
  return path;
}

}  // namespace sluice::kube
