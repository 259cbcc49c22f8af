#include "operator/api/worker_size.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/fields.h"

namespace sluice::api {

using nlohmann::json;

namespace {

// Of a part of a worker's CPU: a smaller one hardly starts an interpreter.
constexpr std::int64_t kLeastMillicores = 100;

// Whole mebibytes are easier to read.
std::string memory_quantity(std::int64_t bytes) {
  constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
  return bytes % kMebibyte == 0 ? std::to_string(bytes / kMebibyte) + "Mi" : std::to_string(bytes);
}

}  // namespace

WorkerSize AutoResources::least() const {
  for (const std::int64_t part : {4, 2})
    if (millicores / part >= kLeastMillicores) return {millicores / part, min_memory_bytes};
  return {millicores, min_memory_bytes};
}

std::int64_t AutoResources::within(std::int64_t memory_bytes) const {
  return std::min(std::max(memory_bytes, min_memory_bytes), max_memory_bytes);
}

ContainerResources AutoResources::resources(const WorkerSize& size) const {
  const std::int64_t limit = std::max(size.memory_bytes, std::min(2 * size.memory_bytes, max_memory_bytes));
  return {size.millicores, size.memory_bytes, size.millicores, limit};
}

AutoResources read_auto_resources(const json& object) {
  AutoResources read;
  const auto take = [&](std::int64_t value, std::int64_t& out) {
    if (value > 0) out = value;
  };
  take(millicores_field(object, "/cpu"), read.millicores);
  take(bytes_field(object, "/firstMemory"), read.first_memory_bytes);
  take(bytes_field(object, "/minMemory"), read.min_memory_bytes);
  take(bytes_field(object, "/maxMemory"), read.max_memory_bytes);
  return read;
}

json render(const ContainerResources& resources) {
  const auto list = [](std::int64_t millicores, std::int64_t memory_bytes) {
    return json{{"cpu", std::to_string(millicores) + "m"}, {"memory", memory_quantity(memory_bytes)}};
  };
  return {{"requests", list(resources.request_millicores, resources.request_memory_bytes)},
          {"limits", list(resources.limit_millicores, resources.limit_memory_bytes)}};
}

WorkerSize requested_size(const json& resources) {
  return {millicores_field(resources, "/requests/cpu"), bytes_field(resources, "/requests/memory")};
}

}  // namespace sluice::api
