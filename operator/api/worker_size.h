// The size of a data worker, where the TrainingJob leaves it to Sluice: spec.dataWorkers.autoResources.
//
// Thread safety: values and pure functions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "operator/api/container_bounds.h"
#include "operator/api/limit_range.h"

namespace sluice::api {

// What one worker requests.
struct WorkerSize {
  std::int64_t millicores = 0;
  std::int64_t memory_bytes = 0;

  friend bool operator==(const WorkerSize&, const WorkerSize&) = default;
};

// The bounds of the sizes that Sluice may choose. The values here are the schema's defaults.
struct AutoResources {
  std::int64_t millicores = 1000;  // smaller only where no node has so many free
  std::int64_t first_memory_bytes = std::int64_t{1} << 30;
  std::int64_t min_memory_bytes = std::int64_t{128} << 20;
  std::int64_t max_memory_bytes = std::int64_t{8} << 30;
  // Of a part of a worker's CPU: a smaller one hardly starts an interpreter.
  std::int64_t least_millicores = 100;
  std::optional<double> memory_ratio = {};  // of the limit to the request, at most

  // The same, as far as the namespace allows such containers.
  AutoResources within(const ContainerBounds& bounds) const;
  std::int64_t within(std::int64_t memory_bytes) const;
  WorkerSize first() const { return {millicores, within(first_memory_bytes)}; }
  // The size for a cluster in which no node has room for more. Its memory is the least, its CPU a quarter; a half if a
  // quarter is less than least_millicores; all of it if a half is.
  WorkerSize least() const;
  // With limits: a worker gets the CPU of its request, and at most twice its memory.
  ContainerResources resources(const WorkerSize& size) const;
};

// Reads spec.dataWorkers.autoResources; null: the defaults.
AutoResources read_auto_resources(const nlohmann::json& object);

// As a container's field `resources`; what is 0 is left out.
nlohmann::json render(const ContainerResources& resources);

// What a container's field `resources` says.
ContainerResources read_resources(const nlohmann::json& resources);

// What it requests.
WorkerSize requested_size(const nlohmann::json& resources);

}  // namespace sluice::api
