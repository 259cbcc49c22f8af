#include "operator/observe/namespace_caps.h"

#include <optional>

namespace sluice::observe {
namespace {

std::string bounded(int& value, const std::optional<int>& most, const char* name, const std::string& name_space) {
  if (!most || value <= *most) return "";
  std::string sentence = std::string("Its ") + name + " " + std::to_string(value) + " counts as " +
                         std::to_string(*most) + ", the most in namespace " + name_space + ".";
  value = *most;
  return sentence;
}

}  // namespace

std::string apply_caps(const control::NamespaceCaps& caps, scheduler::Job& job) {
  const std::string priority = bounded(job.priority, caps.priority, "priority", job.id.job_namespace);
  const std::string weight = bounded(job.weight, caps.weight, "weight", job.id.job_namespace);
  return priority + (priority.empty() || weight.empty() ? "" : " ") + weight;
}

}  // namespace sluice::observe
