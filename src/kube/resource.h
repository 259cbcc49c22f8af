// Names of things in the Kubernetes API: which kind (Resource), which object (ObjectKey), and their URLs.
// Thread safety: values.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace sluice::kube {

// API objects are JSON values. Files that look inside include <nlohmann/json.hpp>.
using Json = nlohmann::json;

// An object as last seen. Immutable and shared: a reader keeps its object.
using ObjectPointer = std::shared_ptr<const Json>;

// A kind of the API. The texts have static storage duration.
struct Resource {
  std::string_view group;  // empty: the core group
  std::string_view version;
  std::string_view plural;
  std::string_view kind;
  bool namespaced = true;

  // "v1", "batch/v1"
  std::string api_version() const;

  friend bool operator==(const Resource&, const Resource&) = default;
};

inline constexpr Resource kPods{"", "v1", "pods", "Pod"};
inline constexpr Resource kNodes{"", "v1", "nodes", "Node", false};
inline constexpr Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline constexpr Resource kServices{"", "v1", "services", "Service"};
inline constexpr Resource kSecrets{"", "v1", "secrets", "Secret"};
inline constexpr Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap"};
inline constexpr Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount"};
inline constexpr Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false};
inline constexpr Resource kJobs{"batch", "v1", "jobs", "Job"};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease"};
inline constexpr Resource kEvents{"events.k8s.io", "v1", "events", "Event"};
inline constexpr Resource kTrainingJobs{"sluice.dev", "v1alpha1", "trainingjobs", "TrainingJob"};
inline constexpr Resource kDataWorkerPools{"sluice.dev", "v1alpha1", "dataworkerpools", "DataWorkerPool"};

struct ObjectKey {
  std::string namespace_;  // empty: the object is cluster-scoped
  std::string name;

  // "namespace/name", or "name"
  std::string to_string() const;

  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

// The key in an object's metadata; empty texts where it has none.
ObjectKey key_of(const Json& object);

// "/apis/batch/v1/namespaces/a/jobs"; an empty namespace means all of them.
std::string collection_path(const Resource& resource, std::string_view namespace_);

// "/apis/batch/v1/namespaces/a/jobs/b" or ".../b/status". REQUIRES: key.name is not empty.
std::string object_path(const Resource& resource, const ObjectKey& key, std::string_view subresource = "");

}  // namespace sluice::kube

template <>
struct std::hash<sluice::kube::ObjectKey> {
  std::size_t operator()(const sluice::kube::ObjectKey& key) const noexcept {
    const std::size_t first = std::hash<std::string>{}(key.namespace_);
    return first * 1099511628211u ^ std::hash<std::string>{}(key.name);
  }
};
