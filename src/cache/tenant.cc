#include "src/cache/tenant.h"

#include <utility>

#include "src/base/job_number.h"

namespace sluice::cache {

Key of_tenant(const std::string& tenant, Key key) {
  if (tenant.empty()) return key;
  return {std::string(kTenantMark) + tenant + '\0' + key.place, std::move(key.version)};
}

std::uint64_t of_tenant(std::string_view tenant, std::uint64_t number) {
  return tenant.empty() ? number : number_of(tenant, number);
}

}  // namespace sluice::cache
