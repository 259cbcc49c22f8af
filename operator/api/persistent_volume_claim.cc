#include "operator/api/persistent_volume_claim.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/fields.h"

namespace sluice::api {

bool PersistentVolumeClaim::serves_several_nodes() const {
  const nlohmann::json& modes = list_field(object(), "/spec/accessModes");
  return std::any_of(modes.begin(), modes.end(),
                     [](const nlohmann::json& mode) { return mode == "ReadOnlyMany" || mode == "ReadWriteMany"; });
}

}  // namespace sluice::api
