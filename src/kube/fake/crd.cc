#include "src/kube/fake/crd.h"

#include <algorithm>

#include "src/kube/fake/yaml.h"

namespace sluice::kube::fake {
namespace {

// ".spec.replicas" as "/spec/replicas".
std::string pointer_of(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return path;
}

}  // namespace

Result<Crd> parse_crd(const Json& document) {
  try {
    const Json& spec = document.at("spec");
    const Json& version = spec.at("versions").at(0);
    Crd crd;
    crd.group = spec.at("group");
    crd.version = version.at("name");
    crd.plural = spec.at("names").at("plural");
    crd.kind = spec.at("names").at("kind");
    crd.namespaced = spec.at("scope") == "Namespaced";
    const Json subresources = version.value("subresources", Json::object());
    crd.has_status = subresources.contains("status");
    if (const auto scale = subresources.find("scale"); scale != subresources.end())
      crd.scale = ScalePointers{pointer_of(scale->at("specReplicasPath")), pointer_of(scale->at("statusReplicasPath")),
                                pointer_of(scale->value("labelSelectorPath", ""))};
    SLUICE_TRY(crd.schema, Schema::read(version.at("schema").at("openAPIV3Schema")));
    return crd;
  } catch (const Json::exception& failure) {
    return invalid_argument(std::string("no CustomResourceDefinition: ") + failure.what());
  }
}

Result<Crd> read_crd(const std::string& path) {
  SLUICE_TRY(const Json document, read_yaml(path));
  auto crd = parse_crd(document);
  return crd.ok() ? crd : crd.error().with_context(path);
}

}  // namespace sluice::kube::fake
