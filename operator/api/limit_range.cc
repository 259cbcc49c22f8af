#include "operator/api/limit_range.h"

#include <nlohmann/json.hpp>

#include "operator/api/fields.h"

namespace sluice::api {

ContainerResources LimitRange::filled_in(ContainerResources resources) const {
  const auto put_in = [](std::int64_t& value, std::int64_t by_default) {
    if (value == 0) value = by_default;
  };
  for (const nlohmann::json& item : list_field(object(), "/spec/limits")) {
    if (text_field(item, "/type") != "Container") continue;
    put_in(resources.request_millicores, millicores_field(item, "/defaultRequest/cpu"));
    put_in(resources.request_memory_bytes, bytes_field(item, "/defaultRequest/memory"));
    put_in(resources.limit_millicores, millicores_field(item, "/default/cpu"));
    put_in(resources.limit_memory_bytes, bytes_field(item, "/default/memory"));
  }
  return resources;
}

}  // namespace sluice::api
