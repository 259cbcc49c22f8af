// A CustomResourceDefinition as the fake API server needs it; read from the files in crds/, the only copy.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/base/result.h"
#include "src/kube/fake/schema.h"

namespace sluice::kube::fake {

// JSON pointers into the object, from the scale subresource's paths.
struct ScalePointers {
  std::string spec_replicas;
  std::string status_replicas;
  std::string selector;
};

// Thread safety: a value.
struct Crd {
  std::string group;
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;
  bool has_status = false;
  std::optional<ScalePointers> scale;
  std::shared_ptr<const Schema> schema;
};

// Takes the first version. Errors: InvalidArgument for another document, or one with a keyword that the fake does not
// know.
Result<Crd> parse_crd(const Json& document);

// Of a YAML file. Errors: as parse_crd, with the file's name; NotFound.
Result<Crd> read_crd(const std::string& path);

}  // namespace sluice::kube::fake
