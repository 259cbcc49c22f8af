// The kinds that the fake API server serves: names, subresources, and the built-in kinds' own rules as far as Sluice's
// objects meet them.
//
// Thread safety: immutable after construction.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/kube/fake/crd.h"
#include "src/kube/fake/field_ownership.h"
#include "src/kube/fake/schema.h"
#include "src/kube/resource.h"

namespace sluice::kube::fake {

struct Kind {
  std::string group;
  std::string version;
  std::string plural;
  std::string name;
  bool namespaced = true;
  bool has_status = false;          // writes to the object leave .status alone, and the other way round
  bool counts_generations = false;  // metadata.generation grows with every change outside metadata and status
  bool is_graceful = false;         // a deletion waits for the kubelet
  std::optional<ScalePointers> scale;
  std::shared_ptr<const Schema> schema;  // null: a built-in kind, with:
  std::shared_ptr<const Schema> fields;  // what its decoder refuses, or null: nothing
  void (*set_defaults)(Json& object, const Json* before) = nullptr;
  void (*check)(const Json& object, const Json* before, std::vector<Violation>& found) = nullptr;

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  // "jobs.batch", as in the server's messages.
  std::string qualified_plural() const { return group.empty() ? plural : plural + "." + group; }
  Resource resource() const { return {group, version, plural, name, namespaced}; }
  Shape shape() const { return Shape::of_object(schema.get(), name); }
};

// Pods, nodes, namespaces, services, secrets, config maps, resource quotas, jobs, leases and events.
std::vector<std::unique_ptr<Kind>> builtin_kinds();

std::unique_ptr<Kind> custom_kind(Crd crd);

}  // namespace sluice::kube::fake
