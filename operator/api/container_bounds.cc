#include "operator/api/container_bounds.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "operator/api/fields.h"
#include "operator/api/pod.h"
#include "operator/api/quantity_text.h"
#include "operator/api/reserved.h"
#include "operator/api/worker_size.h"

namespace sluice::api {

using nlohmann::json;

namespace {

void tighten(Bound& bound, std::int64_t least, std::int64_t most, double ratio) {
  bound.least = std::max(bound.least, least);
  if (most > 0) bound.most = std::min(bound.most.value_or(most), most);
  if (ratio > 0) bound.ratio = std::min(bound.ratio.value_or(ratio), ratio);
}

// Of one resource; 0: not said.
struct Amounts {
  std::int64_t request = 0;
  std::int64_t limit = 0;
};

Amounts fitted_amounts(Amounts amounts, const Bound& bound) {
  const auto most_for = [&](std::int64_t request) {  // of the ratio
    return std::max(request, static_cast<std::int64_t>(static_cast<double>(request) * *bound.ratio));
  };
  amounts.request = std::max(amounts.request, bound.least);
  if (bound.most) amounts.request = std::min(amounts.request, *bound.most);
  if (amounts.limit > 0)
    amounts.limit = std::max({amounts.limit, bound.least, amounts.request});
  else if (bound.ratio)
    amounts.limit = most_for(amounts.request);
  else if (bound.most)
    amounts.limit = *bound.most;
  if (bound.most) amounts.limit = std::min(amounts.limit, *bound.most);
  if (bound.ratio && amounts.limit > most_for(amounts.request))
    amounts.request = static_cast<std::int64_t>(std::ceil(static_cast<double>(amounts.limit) / *bound.ratio));
  return amounts;
}

// Names of a container's amounts: PATH.limits.cpu.
auto names_at(std::string_view path) {
  return [path](const std::string& amount) { return std::string(path) + "." + amount; };
}

// Names of the sums of a pod.
auto names_of_sums(std::string_view pod) {
  return [pod](const std::string& amount) { return "the sum of " + amount + " in " + std::string(pod); };
}

// The first that is not allowed; empty: all is. `text_of` writes an amount.
template <class NameOf, class TextOf>
std::string objection_to(const Amounts& amounts, const Bound& bound, const NameOf& name_of, const char* resource,
                         const TextOf& text_of) {
  const auto name = [&](const char* list) { return name_of(std::string(list) + "." + resource); };
  const auto said = [&](const char* list, std::int64_t amount) {
    return name(list) + (amount > 0 ? " is " + text_of(amount) : " is missing") +
           ", and the namespace's LimitRange allows ";
  };
  const std::string least = "no less than " + text_of(bound.least);
  if (amounts.request < bound.least)
    return said("requests", amounts.request) + least + ": " + (amounts.request > 0 ? "raise it" : "set it");
  if (amounts.limit > 0 && amounts.limit < bound.least) return said("limits", amounts.limit) + least + ": raise it";
  if (bound.most && (amounts.limit == 0 || amounts.limit > *bound.most))
    return said("limits", amounts.limit) + "no more than " + text_of(*bound.most) + ": " +
           (amounts.limit > 0 ? "lower it" : "set it");
  if (bound.most && amounts.request > *bound.most)
    return said("requests", amounts.request) + "no more than " + text_of(*bound.most) + ": lower it";
  if (bound.ratio && amounts.limit == 0) return said("limits", 0) + "nothing without it: set it";
  if (bound.ratio && static_cast<double>(amounts.limit) > static_cast<double>(amounts.request) * *bound.ratio)
    return said("limits", amounts.limit) + "no more than " + number_text(*bound.ratio) +
           " times the request: lower it, or raise " + name("requests");
  return "";
}

// To a limit that the namespace gives where none is said; empty: there is none, or it holds the request.
template <class TextOf>
std::string objection_to_default(const Amounts& amounts, std::string_view path, const std::string& resource,
                                 const TextOf& text_of) {
  if (amounts.limit == 0 || amounts.request <= amounts.limit) return "";
  const auto name_of = names_at(path);
  return name_of("requests." + resource) + " is " + text_of(amounts.request) +
         ", and the namespace's LimitRange gives it a limit of " + text_of(amounts.limit) + ": set " +
         name_of("limits." + resource);
}

}  // namespace

ContainerBounds::ContainerBounds(std::span<const kube::ObjectPointer> limit_ranges)
    : limit_ranges_(limit_ranges.begin(), limit_ranges.end()) {
  for (const kube::ObjectPointer& object : limit_ranges_) {
    for (const json& item : list_field(*object, "/spec/limits")) {
      const std::string type = text_field(item, "/type");
      if (type != "Container" && type != "Pod") continue;
      // A ratio is a quantity, too: "1500m" is one and a half.
      const auto ratio = [&](const char* path) { return static_cast<double>(millicores_field(item, path)) / 1000; };
      tighten(type == "Pod" ? pod_millicores_ : millicores_, millicores_field(item, "/min/cpu"),
              millicores_field(item, "/max/cpu"), ratio("/maxLimitRequestRatio/cpu"));
      tighten(type == "Pod" ? pod_memory_bytes_ : memory_bytes_, bytes_field(item, "/min/memory"),
              bytes_field(item, "/max/memory"), ratio("/maxLimitRequestRatio/memory"));
    }
  }
}

ContainerResources ContainerBounds::filled_in(ContainerResources resources) const {
  if (resources.request_millicores == 0) resources.request_millicores = resources.limit_millicores;
  if (resources.request_memory_bytes == 0) resources.request_memory_bytes = resources.limit_memory_bytes;
  for (const kube::ObjectPointer& range : limit_ranges_) resources = LimitRange(*range).filled_in(resources);
  return resources;
}

ContainerResources ContainerBounds::fitted(ContainerResources resources) const {
  // A limit is said where the namespace would give it one that is less than the request.
  const ContainerResources filled = filled_in(resources);
  const auto say_limit = [](std::int64_t& limit, std::int64_t by_default, std::int64_t request) {
    if (limit == 0 && by_default > 0 && by_default < request) limit = request;
  };
  say_limit(resources.limit_millicores, filled.limit_millicores, resources.request_millicores);
  say_limit(resources.limit_memory_bytes, filled.limit_memory_bytes, resources.request_memory_bytes);
  const Amounts cpu = fitted_amounts({resources.request_millicores, resources.limit_millicores}, millicores_);
  const Amounts memory = fitted_amounts({resources.request_memory_bytes, resources.limit_memory_bytes}, memory_bytes_);
  return {cpu.request, memory.request, cpu.limit, memory.limit};
}

ContainerBounds ContainerBounds::beside(const ContainerResources& others) const {
  const auto tighten_by = [](Bound& bound, const Bound& pod, const Amounts& of_others) {
    const std::int64_t left = pod.most.value_or(0) - std::max(of_others.request, of_others.limit);
    tighten(bound, pod.least - of_others.request, pod.most ? std::max<std::int64_t>(left, 1) : 0,
            pod.ratio.value_or(0));
  };
  ContainerBounds tighter = *this;
  tighten_by(tighter.millicores_, pod_millicores_, {others.request_millicores, others.limit_millicores});
  tighten_by(tighter.memory_bytes_, pod_memory_bytes_, {others.request_memory_bytes, others.limit_memory_bytes});
  return tighter;
}

ContainerResources ContainerBounds::together(const json& pod_spec) const {
  const auto sum = [&](std::int64_t ContainerResources::*amount) {
    return reserved(PodSpec(pod_spec), [&](const Container& container) {
      return filled_in(read_resources(container.resources())).*amount;
    });
  };
  return {sum(&ContainerResources::request_millicores), sum(&ContainerResources::request_memory_bytes),
          sum(&ContainerResources::limit_millicores), sum(&ContainerResources::limit_memory_bytes)};
}

std::string ContainerBounds::objection(const ContainerResources& resources, std::string_view path) const {
  const ContainerResources filled = filled_in(resources);
  const Amounts cpu{filled.request_millicores, filled.limit_millicores};
  const Amounts memory{filled.request_memory_bytes, filled.limit_memory_bytes};
  std::string objection = objection_to(cpu, millicores_, names_at(path), "cpu", millicores_text);
  if (objection.empty()) objection = objection_to(memory, memory_bytes_, names_at(path), "memory", memory_text);
  if (objection.empty() && resources.limit_millicores == 0)
    objection = objection_to_default(cpu, path, "cpu", millicores_text);
  if (objection.empty() && resources.limit_memory_bytes == 0)
    objection = objection_to_default(memory, path, "memory", memory_text);
  return objection;
}

std::string ContainerBounds::objection_to_pod(const json& pod_spec, std::string_view pod) const {
  if (!field(pod_spec, "/resources").is_null()) return "";
  const ContainerResources all = together(pod_spec);
  const std::string cpu = objection_to({all.request_millicores, all.limit_millicores}, pod_millicores_,
                                       names_of_sums(pod), "cpu", millicores_text);
  if (!cpu.empty()) return cpu;
  return objection_to({all.request_memory_bytes, all.limit_memory_bytes}, pod_memory_bytes_, names_of_sums(pod),
                      "memory", memory_text);
}

std::vector<kube::ObjectPointer> limit_ranges_in(const kube::Store::Objects& limit_ranges,
                                                 const std::string& name_space) {
  std::vector<kube::ObjectPointer> found;
  for (auto range = limit_ranges.lower_bound({name_space, ""});
       range != limit_ranges.end() && range->first.namespace_ == name_space; ++range)
    found.push_back(range->second);
  return found;
}

}  // namespace sluice::api
