#include "scheduler/policies/registry.h"

#include <array>
#include <string>

#include "scheduler/policies/sluice.h"

namespace sluice::scheduler {
namespace {

using Maker = std::unique_ptr<Policy> (*)(const Config&);

struct Entry {
  std::string_view name;
  Maker make;
};

constexpr std::array kPolicies = {
    Entry{"sluice",
          [](const Config& config) -> std::unique_ptr<Policy> { return std::make_unique<SluicePolicy>(config); }},
};

}  // namespace

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const Config& config) {
  std::string known;
  for (const Entry& entry : kPolicies) {
    if (entry.name == name) return entry.make(config);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Error(ErrorCode::kInvalidArgument, "there is no policy \"" + std::string(name) + "\"; there are " + known);
}

std::vector<std::string_view> policy_names() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kPolicies) names.push_back(entry.name);
  return names;
}

}  // namespace sluice::scheduler
