// The records of several tenants in one store: none finds those of another one.
//
// The tenant is in front of a place. It is hashed for itself, so that the hash of a whole place follows from the
// tenant and the hash that the job knows, which is of the rest. Numbers of data sets and of jobs have tenants in
// the same way. That of a job is its namespace, even where namespaces share their records.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/cache/record.h"

namespace sluice::cache {

// No place without a tenant begins so: those begin with the name of a form.
inline constexpr std::string_view kTenantMark = "tenant ";

// Without a tenant (""), they stay as they are. REQUIRES: no tenant's name has a NUL.
Key of_tenant(const std::string& tenant, Key key);
// Of a place's hash_of(), of a data set or of a job.
std::uint64_t of_tenant(std::string_view tenant, std::uint64_t number);

}  // namespace sluice::cache
