// A node of the cluster.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operator/api/object.h"

namespace sluice::api {

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
};

// Thread safety, missing fields: as Object.
class Node : public Object {
 public:
  using Object::Object;

  std::int64_t allocatable_millicores() const;
  std::optional<std::int64_t> allocatable_memory_bytes() const;  // nullopt: it does not say
  int gpus() const;                                              // allocatable accelerators
  std::map<std::string, std::int64_t> devices() const;           // allocatable extended resources, by name
  std::string instance_type() const;                             // of its cloud; empty: none
  bool spot() const;                                             // may be reclaimed, by the labels of the clouds
  bool schedulable() const;                                      // ready and not cordoned
  std::vector<Taint> repelling_taints() const;                   // NoSchedule and NoExecute: they keep pods off
  std::optional<std::string> label_if_any(const std::string& name) const;
};

}  // namespace sluice::api
