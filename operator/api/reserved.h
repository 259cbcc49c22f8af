// What the containers of a pod need together (KEP-753): the larger of what runs and of the peak of initialisation. The
// peak counts each init container beside the sidecars before it.
//
// Thread safety: a pure function.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "operator/api/pod.h"

namespace sluice::api {

// Of one amount, by what `amount_of` says of a container.
template <class AmountOf>
std::int64_t reserved(const PodSpec& spec, const AmountOf& amount_of) {
  std::int64_t sidecars = 0;
  std::int64_t initialisation = 0;
  for (const nlohmann::json& each : spec.init_containers()) {
    const Container container(each);
    const std::int64_t amount = amount_of(container);
    if (container.is_sidecar()) sidecars += amount;
    initialisation = std::max(initialisation, sidecars + (container.is_sidecar() ? 0 : amount));
  }
  std::int64_t running = sidecars;
  for (const nlohmann::json& container : spec.containers()) running += amount_of(Container(container));
  return std::max(running, initialisation);
}

}  // namespace sluice::api
