#include "operator/api/worker_size.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/fields.h"
#include "operator/api/quantity_text.h"

namespace sluice::api {

using nlohmann::json;

WorkerSize AutoResources::least() const {
  for (const std::int64_t part : {4, 2})
    if (millicores / part >= least_millicores) return {millicores / part, min_memory_bytes};
  return {millicores, min_memory_bytes};
}

std::int64_t AutoResources::within(std::int64_t memory_bytes) const {
  return std::min(std::max(memory_bytes, min_memory_bytes), max_memory_bytes);
}

AutoResources AutoResources::within(const ContainerBounds& bounds) const {
  const auto clamp = [](std::int64_t& value, const Bound& bound) {
    value = std::max(value, bound.least);
    if (bound.most) value = std::min(value, *bound.most);
  };
  AutoResources fitted = *this;
  for (std::int64_t* memory : {&fitted.first_memory_bytes, &fitted.min_memory_bytes, &fitted.max_memory_bytes})
    clamp(*memory, bounds.memory_bytes());
  for (std::int64_t* cpu : {&fitted.millicores, &fitted.least_millicores}) clamp(*cpu, bounds.millicores());
  fitted.memory_ratio = bounds.memory_bytes().ratio;
  return fitted;
}

ContainerResources AutoResources::resources(const WorkerSize& size) const {
  std::int64_t limit = std::min(2 * size.memory_bytes, max_memory_bytes);
  if (memory_ratio)
    limit = std::min(limit, static_cast<std::int64_t>(static_cast<double>(size.memory_bytes) * *memory_ratio));
  return {size.millicores, size.memory_bytes, size.millicores, std::max(size.memory_bytes, limit)};
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
  json rendered = json::object();
  const auto put = [&](const char* list, const char* resource, std::int64_t amount, const std::string& text) {
    if (amount > 0) rendered[list][resource] = text;
  };
  put("requests", "cpu", resources.request_millicores, millicores_text(resources.request_millicores));
  put("requests", "memory", resources.request_memory_bytes, memory_text(resources.request_memory_bytes));
  put("limits", "cpu", resources.limit_millicores, millicores_text(resources.limit_millicores));
  put("limits", "memory", resources.limit_memory_bytes, memory_text(resources.limit_memory_bytes));
  return rendered;
}

ContainerResources read_resources(const json& resources) {
  return {millicores_field(resources, "/requests/cpu"), bytes_field(resources, "/requests/memory"),
          millicores_field(resources, "/limits/cpu"), bytes_field(resources, "/limits/memory")};
}

WorkerSize requested_size(const json& resources) {
  return {millicores_field(resources, "/requests/cpu"), bytes_field(resources, "/requests/memory")};
}

}  // namespace sluice::api
