// A claim of storage, as far as it says how many nodes can read its files.
#pragma once

#include "operator/api/object.h"

namespace sluice::api {

inline constexpr kube::Resource kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"};

// Thread safety, missing fields: as Object.
class PersistentVolumeClaim : public Object {
 public:
  using Object::Object;

  // Pods on several nodes may mount it at once: ReadOnlyMany or ReadWriteMany is among its access modes, which never
  // change.
  bool serves_several_nodes() const;
};

}  // namespace sluice::api
