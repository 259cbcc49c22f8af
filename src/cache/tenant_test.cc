#include "src/cache/tenant.h"

#include "src/base/testing/catch.h"

namespace sluice::cache {
namespace {

TEST_CASE("who knows only the hash of a job's own place can tell that of the tenant's") {
  const Key own{"source bytes 1\0team\0/data/a.jpg", "state"};
  for (const std::string tenant : {"", "team-a", "team-b"}) {
    const Key kept = of_tenant(tenant, own);
    CHECK(hash_of(kept.place) == of_tenant(tenant, hash_of(own.place)));
    CHECK(kept.version == own.version);
    CHECK((kept.place == own.place) == tenant.empty());
  }
}

TEST_CASE("tenants have neither a place nor a number in common") {
  const Key own{"source bytes 1", "state"};
  CHECK(of_tenant("a", own).place != of_tenant("b", own).place);
  CHECK(of_tenant("a", 7) != of_tenant("b", 7));
  CHECK(of_tenant("a", 7) != 7);
  CHECK(of_tenant("", 7) == 7);
  // A tenant's name does not run on into the place.
  CHECK(of_tenant("a", Key{"bc", ""}).place != of_tenant("ab", Key{"c", ""}).place);
}

}  // namespace
}  // namespace sluice::cache
