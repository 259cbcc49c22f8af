#include "src/cache/tenant.h"

#include <array>
#include <utility>

#include "src/cache/checksum.h"

namespace sluice::cache {

Key of_tenant(const std::string& tenant, Key key) {
  if (tenant.empty()) return key;
  return {std::string(kTenantMark) + tenant + '\0' + key.place, std::move(key.version)};
}

std::uint64_t of_tenant(std::string_view tenant, std::uint64_t number) {
  if (tenant.empty()) return number;
  const std::array<std::uint64_t, 2> both{hash_of(tenant), number};
  return checksum({reinterpret_cast<const std::uint8_t*>(both.data()), sizeof(both)});
}

}  // namespace sluice::cache
