#include "src/kube/resource_version.h"

#include <nlohmann/json.hpp>

#include "src/base/testing/catch.h"

namespace sluice::kube {
namespace {

TEST_CASE("resourceVersions compare as numbers of any length, and not at all when they are none") {
  struct Case {
    const char* a;
    const char* b;
    bool older;
  };
  const Case cases[] = {
      {"9", "10", true},  // as texts it would be the other way round
      {"10", "9", false},
      {"10", "10", false},
      {"10", "11", true},
      {"0", "1", true},
      {"99999999999999999999", "100000000000000000000", true},  // beyond 64 bits
      {"", "1", false},
      {"1", "", false},
      {"01", "2", false},  // not how a server writes numbers
      {"a", "b", false},
      {"1x", "2", false},
      {"-1", "2", false},
  };
  for (const Case& c : cases) {
    INFO(c.a << " < " << c.b);
    CHECK(is_older_version(c.a, c.b) == c.older);
  }
}

TEST_CASE("the resourceVersion of whatever a server may send") {
  CHECK(resource_version_of({{"metadata", {{"resourceVersion", "7"}}}}) == "7");
  CHECK(resource_version_of({{"metadata", {{"resourceVersion", 7}}}}).empty());
  CHECK(resource_version_of({{"metadata", "text"}}).empty());
  CHECK(resource_version_of(Json::object()).empty());
}

}  // namespace
}  // namespace sluice::kube
